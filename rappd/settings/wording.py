"""Each setting in the words of the page: a name, and a sentence for somebody who is no engineer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Wording(NamedTuple):
    """A setting's ``title``, the sentence ``about`` it, and what each of its ``choices`` is called."""

    title: str
    about: str
    choices: Mapping[str, str] = {}


WORDING = {
    "port": Wording("Port of this page", "The number behind 127.0.0.1: in this page's address."),
    "name": Wording("Name of this machine", "What it is called here and on your other machines. Empty: its own name."),
    "soul_path": Wording("Soul file", "The file whose text shapes how answers sound."),
    "agents_path": Wording("Folder of agents", "Where agent files lie."),
    "voice_mode": Wording("Voice mode", "Answers also carry a short form to be read aloud."),
    "twin_mode": Wording("Twin's comment", "Show your twin's comment under each answer."),
    "voice_zip_password": Wording("Password of voice.zip", "Opens the file with your voice."),
    "provider.use": Wording("Where answers come from", "By itself: the first that is set up, of a server, Azure, this computer and Copilot.",
        {"auto": "By itself", "server": "A model server", "azure": "Azure OpenAI", "local": "This computer",
         "copilot": "GitHub Copilot", "none": "No model"}),
    "provider.url": Wording("Address of the model server", "Any server that speaks like OpenAI."),
    "provider.key": Wording("Key of the model server", "It stays on this computer and is sent to that server alone."),
    "provider.model": Wording("Model of that server", "Empty: the first that the server lists."),
    "provider.timeout": Wording("Patience with the model", "Seconds without a word after which the model server is given up."),
    "provider.price_in_per_million": Wording("Price of reading", "US dollars for a million tokens read. For several models: MODEL=2.5, by comma."),
    "provider.price_out_per_million": Wording("Price of writing", "The same for tokens that it writes. Without both prices no cost is shown."),
    "model": Wording("Chosen model", "The one picked on this page. Empty: chosen by itself."),
    "provider.local": Wording("Models on this computer", "A model server that runs here is looked for.",
        {"ask": "Ask me before one is used", "on": "Use it without asking", "off": "Do not look for one"}),
    "provider.local_ports": Wording("Ports to look at", "Where a model server on this computer is looked for, by comma."),
    "provider.local_server": Wording("Accepted model server", "The one on this computer that you said yes to."),
    "models.help": Wording("Help for the model", "An agent that your words plainly ask for is used even if the model does not think of it.",
        {"auto": "For small models, and those that miss calls", "always": "For every model", "never": "Never"}),
    "github.token": Wording("GitHub token", "For GitHub Copilot, in place of signing in."),
    "github.model": Wording("Model of Copilot", "The one that GitHub Copilot is asked for."),
    "azure.endpoint": Wording("Azure address", "Like https://your-name.openai.azure.com."),
    "azure.deployment": Wording("Azure deployment", "The name that you gave the model in Azure."),
    "azure.key": Wording("Azure key", "It stays on this computer and is sent to Azure alone."),
    "azure.version": Wording("Azure version", "The version of Azure's interface."),
    "llm_fake": Wording("Pretended model", "Answers come from a script. For tests only."),
    "brainstem.rounds": Wording("Rounds per answer", "How often a model may use agents before it has to answer."),
    "models.result_characters": Wording("Length of results", "The most characters of what an agent answers that a model is given."),
    "agents.timeout": Wording("Time of one agent", "Seconds after which a call of an agent is stopped."),
    "agents.memory_mb": Wording("Memory of agents", "The most that one process of agents may use, in MB."),
    "agents.workers": Wording("Agents at once", "How many processes may run agents at the same time."),
    "agents.install_packages": Wording("Install packages", "Agents get the Python packages that they ask for."),
    "agents.package_index": Wording("Source of packages", "Where packages come from. Empty: the usual place."),
    "agents.model_calls": Wording("Questions of one agent", "How often one call of an agent may ask the model."),
    "agents.sandbox": Wording("Sandbox", "How agents are kept apart from your files.",
        {"auto": "The best that this computer has", "namespace": "Linux namespaces", "landlock": "Linux Landlock", "none": "Not at all"}),
    "agents.may_write_code": Wording("Agents may change code", "Off is safer: then an agent cannot change what runs here."),
    "agents.may_read": Wording("Hidden files for agents", "Keys and tokens of other programs that agents may read, by comma. Empty is safer."),
    "agents.must_declare": Wording("Agents must say what they need", "Agents that do not say which folders and servers they use wait for your yes."),
    "store.strict": Wording("Wait for the disk", "Slower, and a power cut costs no answer. Off: it can cost those of the last second."),
    "http.origins": Wording("Other pages", "Web pages of others that may ask this machine, by comma."),
    "http.open_surface": Wording("Everybody may change things", "Any program on this computer may do what you may do. Leave it off."),
    "http.tools": Wording("HTTP tools", "Other programs on this computer may use your agents as tools."),
    "http.body_mb": Wording("Largest upload", "The most that may be sent to this page at once, in MB."),
    "eggs.registry": Wording("Folder of the agent registry", "A copy of the registry on this computer, for short texts of agents."),
    "peers.listen": Wording("Let other machines in", "Your other machines can reach this one. Strangers can only say hello."),
    "peers.port": Wording("Port for machines", "Where other machines knock. If it is taken, a free one is used."),
    "peers.address": Wording("Network for machines", "any is every network of this computer, 0.0.0.0 only IPv4, :: only IPv6."),
    "peers.nearby": Wording("Find machines nearby", "This machine shows itself in your network and looks for others."),
    "peers.loopback": Wording("Look only on this computer", "For trials with several on one computer."),
    "peers.keep_hours": Wording("Wait for a machine", "Hours that a call or an egg waits for one that is away."),
    "peers.pairing_seconds": Wording("Time to pair", "Seconds that two machines have to compare their words."),
    "neighborhood.ssh_config": Wording("SSH settings file", "For snapshots of machines over SSH. Empty: your own."),
    "neighborhood.github_write": Wording("Restore into git", "What a restoring may do in a repository.",
        {"off": "Nothing", "dry-run": "Only show what it would do", "branch": "A branch of its own"}),
    "estate.beacon": Wording("Show my estate", "Programs on this computer may read your list of twins."),
    "estate.github": Wording("My GitHub name", "For a new estate."),
    "estate.private": Wording("My private part", "Where the private part of your estate lies. Only this text travels."),
    "tether.port": Wording("Port for phones", "Where phones come in. If it is taken, a free one is used."),
    "tether.address": Wording("Network for phones", "any is every network of this computer, 0.0.0.0 only IPv4, :: only IPv6."),
    "listen.networks": Wording("More networks to let in", "IPv6 networks from which machines and phones may connect too, by comma. Empty is safer."),
    "tether.tls": Wording("Phones use https", "Browsers warn about this machine's own certificate. Phones pair anew after a change."),
    "tether.window_seconds": Wording("Life of a QR code", "Seconds until a QR code for a phone is void."),
    "programs.openai": Wording("Answer like OpenAI", "For coding programs and chat windows."),
    "programs.openai_agents": Wording("OpenAI: agents", "Which agents and twins programs on this computer may use, by comma. Empty: all."),
    "programs.ollama": Wording("Answer like Ollama", "For Home Assistant and chat windows."),
    "programs.ollama_agents": Wording("Ollama: agents", "Which agents and twins programs on this computer may use, by comma. Empty: all."),
    "programs.mcp": Wording("Answer over MCP", "For desktop assistants and editors."),
    "programs.mcp_agents": Wording("MCP: agents", "Which agents and twins programs on this computer may use, by comma. Empty: all."),
    "programs.a2a": Wording("Answer over A2A", "For agents of other makers."),
    "programs.a2a_agents": Wording("A2A: agents", "Which agents and twins programs on this computer may use, by comma. Empty: all."),
    "programs.acp": Wording("Answer editors (ACP)", "For editors."),
    "programs.acp_agents": Wording("ACP: agents", "Which agents and twins programs on this computer may use, by comma. Empty: all."),
    "legacy.addresses": Wording("Addresses of older programs", "Who may use the older way to ask this machine. Empty: nobody."),
    "legacy.scopes": Wording("What older programs may do", "HELP.brainstem is talking; HELP.brainstem.NAME is one agent."),
    "notify.command": Wording("Program for news", "Runs for each piece of news, and gets what happened and what to do."),
    "timers.zone": Wording("Time zone of timers", "Like Europe/Berlin. Empty is this computer's."),
    "timers.quiet": Wording("Quiet hours", "Like 22:00-07:00. What timers say in them is told when they are over."),
    "timers.model_calls": Wording("Model calls of timers in a day", "More are not made: each may cost money."),
    "organism.rounds": Wording(
        "Rounds of model-driven listeners", "How often one may ask the model in one turn; then it ends with what was done."
    ),
    "organism.heartbeat_seconds": Wording(
        "Heartbeats of listeners", "Seconds between two; 0 is none. Only listeners that wait for them get them."
    ),
    "organism.state_hours": Wording(
        "Memory of listeners", "Hours after which what a listener keeps for a conversation that rests is forgotten."
    ),
    "github.url": Wording("GitHub's address", "Where you sign in."),
    "github.api": Wording("GitHub's programming address", "Where programs ask GitHub."),
    "github.raw": Wording("GitHub's file address", "Where agents of sources are fetched from."),
}  # fmt: skip
