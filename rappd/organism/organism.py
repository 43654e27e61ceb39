"""The sections of ``organism.yaml``: what exists in this home, by its owner's word."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta


def _text(about: str, pattern: str, longest: int) -> Meta:
    return Meta(pattern=pattern, max_length=longest, description=about)


Name = Annotated[
    str,
    _text("a name of up to 100 characters that begins with a letter", r"^[^\W\d_][^\x00-\x1f\x7f]*$", 100),
]
Line = Annotated[str, Meta(min_length=1, max_length=1000, description="text of 1 to 1000 characters")]
AgentFile = Annotated[
    str,
    _text(
        "the name of an installed file, such as calculator_listener.py",
        r"^[^/.][^/]*_(agent|listener)\.py$",
        200,
    ),
]
PromptFile = Annotated[
    str,
    _text("a file in the folder prompts, such as prompts/clerk.md", r"^prompts/[^/.][^/]*\.(md|txt)$", 200),
]
"""A file in ``$RAPP_HOME/prompts``, where no worker can write."""
Fingerprint = Annotated[
    str, _text("the whole fingerprint of a machine: 64 hex digits", r"^[0-9a-f]{64}$", 64)
]
KeyFile = Annotated[
    str, _text("a file with a public key beside this one, such as lab.pem", r"^[^/.][^/]*\.(pem|pub)$", 200)
]
"""A file with a public key beside ``organism.yaml``."""
_LISTENER_SUFFIX = "_listener.py"
Mode = Literal["single", "all", "first-answer-wins"]
Allowed = Literal["admin", "authenticated", "none"]


class OrganismName(msgspec.Struct, frozen=True, kw_only=True):
    """``organism``: its name in lists and pictures."""

    name: Line = "organism"


class ListedListener(msgspec.Struct, frozen=True, kw_only=True):
    """One of ``listeners``: an installed listener or agent by its name, or all that its file holds."""

    name: Name
    file: AgentFile | None = None


class RemoteTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that machines behind gateways have. Without ``gateways``, all of them are asked."""

    name: Name
    gateways: tuple[Name, ...] = ()
    mode: Mode = "single"


class ModelAgent(msgspec.Struct, frozen=True, kw_only=True):
    """One of ``agents``: a listener that a model drives. ``prompt`` is a file below ``$RAPP_HOME``.

    ``tools`` are names of listeners and agents here, and tools of gateways.
    """

    name: Name
    prompt: PromptFile
    tools: tuple[Name | RemoteTool, ...] = ()
    description: Line | None = None


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """One of ``gateways``: a name for a paired machine, whose key has to be this one."""

    name: Name
    fingerprint: Fingerprint | None = None
    trusted_identity: KeyFile | None = None
    remote_url: Line | None = None
    description: Line | None = None


class MetaFlags(msgspec.Struct, frozen=True, kw_only=True):
    """``meta``: what may be asked of ``core``, and by whom."""

    enabled: bool = True
    allow_list_capabilities: bool = True
    allow_schema_requests: Allowed = "authenticated"
    allow_example_requests: Allowed = "authenticated"
    allow_prompt_requests: Allowed = "authenticated"
    allow_remote: bool = False


class OutOfBand(msgspec.Struct, frozen=True, kw_only=True):
    """``oob``: the privileged channel, which is the control socket whatever stands here."""

    enabled: bool = True
    bind: Annotated[Literal["127.0.0.1", "localhost", "::1"], Meta(description="this machine: 127.0.0.1")] = (
        "127.0.0.1"
    )


class ListedTimer(msgspec.Struct, frozen=True, kw_only=True):
    """One of ``timers``: what the brainstem is asked, or the owner reminded of, at times in words."""

    name: Name
    when: Line
    ask: Line | None = None
    remind: Line | None = None
    zone: Annotated[str, Meta(max_length=64)] = ""


class Organism(msgspec.Struct, frozen=True, kw_only=True):
    """All of the file. ``listeners`` and ``agents`` are None where the file has no such section."""

    organism: OrganismName = OrganismName()
    listeners: tuple[ListedListener, ...] | None = None
    agents: tuple[ModelAgent, ...] | None = None
    gateways: tuple[Gateway, ...] = ()
    meta: MetaFlags | None = None
    oob: OutOfBand = OutOfBand()
    timers: tuple[ListedTimer, ...] = ()

    @property
    def is_list(self) -> bool:
        """True where the file says what is offered; all else is not."""
        return self.listeners is not None or self.agents is not None

    def offers(self, name: str, file: str) -> bool:
        """True for an agent or listener of that name, in that file, which the file names, or does not speak of at all."""
        if not self.is_list:
            return True
        return any(
            one.file == file if one.file is not None else name.casefold() == one.name.casefold()
            for one in self.listeners or ()
        )

    def given_name(self, own: str, file: str) -> str:
        """The name that an entry gives the listener that is called as its file is; "" for none."""
        if own != file.rpartition("/")[2].removesuffix(_LISTENER_SUFFIX):
            return ""  # an argument in the file counts more
        return next((one.name for one in self.listeners or () if one.file == file), "")


REFUSED_KEYS: dict[str, str] = {
    "organism.identity": "The identity key is keys/identity.pem of this home; no file names another one.",
    "listeners.payload_class": "Name the installed file: `file: calculator_listener.py`. No dotted path is imported.",
    "listeners.handler": "Name the installed file: `file: calculator_listener.py`. No dotted path is imported.",
    "listeners.agent": "A listener that a model drives stands in `agents`.",
    "agents.system_prompt": "Call it `prompt`: a file in the folder prompts of this home.",
    "agents.api_key": "Keys of model servers stand in this home's settings: rappd config set provider.key",
    "oob.unix_socket": "The privileged channel is this home's control socket; it cannot be moved.",
    "oob.port": "The privileged channel is this home's control socket and has no TCP port.",
}
"""Keys of published files that cannot be taken over, and what to write."""

MEANINGLESS_KEYS: dict[str, str] = {
    "organism.port": "rappd has its own ports: rappd config get port",
    "organism.tls": "rappd makes its own certificate, which its identity key signs.",
    "thread_scheduling": "Threads run at the same time here.",
    "listeners.broadcast": "Say it at the tool: `mode: all`.",
    "listeners.description": "The description stands in the listener's own file.",
    "agents.tools.remote": "A tool with `mode` or `gateways` is one of other machines.",
    "listeners.peers": "Tools stand in `agents`, below `tools`.",
    "llm": "Models stand in this home's settings: rappd models",
}
"""Keys of published files that have no meaning here, and what stands for them."""


def plain(organism: Organism) -> dict[str, Any]:
    """The sections as JSON, without what is left out."""
    found: dict[str, Any] = msgspec.to_builtins(organism)
    return {key: value for key, value in found.items() if value not in (None, [], ())}
