"""An agent file in LisPy becomes an agent like any other."""

from __future__ import annotations

from agents.contract.agent_contract import ContractError
from agents.contract.file_discovery import CARTRIDGE
from agents.contract.loaded_file import LoadedFile, LoadFailure, describe
from agents.runtimes.lispy.agent import BadLispyAgentError, LispyAgent
from agents.runtimes.lispy.cartridge import agent_of
from agents.storage.text_file import NotUtf8Error, decode


def load_lispy(loaded: LoadedFile, content: bytes) -> None:
    """Makes the one agent that a ``.lispy`` file or a cartridge holds; why there is none is left in ``loaded``."""
    try:
        agent = agent_of(content) if loaded.file.endswith(CARTRIDGE) else LispyAgent(decode(content).text)
        loaded.descriptions.append(describe(agent))
        loaded.instances.append(agent)
    except NotUtf8Error as error:
        loaded.failure = LoadFailure(loaded.file, error.line, f"it {error}")
    except BadLispyAgentError as error:
        loaded.failure = LoadFailure(loaded.file, error.line, str(error))
    except ContractError as error:
        loaded.quarantined.append(LoadFailure(loaded.file, None, str(error), "LispyAgent"))
