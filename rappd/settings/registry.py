"""Every setting there is (RAPP v1 §9 and this project's own). `docs/settings.md` mirrors this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "number", "switch", "list", "prices", "choice", "address", "networks"]


@dataclass(slots=True, frozen=True)
class Setting:
    """One setting: its dotted name in ``rappd.toml``, its environment variable, and its default.

    ``live`` settings take effect at once in a running daemon, others at its next start. A ``choice``
    is one of ``choices``, a ``number`` lies between ``least`` and ``most``, both included. ``former``: its
    name in earlier versions, which is still read.
    """

    name: str
    variable: str
    kind: Kind
    default: str
    help: str
    secret: bool = False
    live: bool = False
    choices: tuple[str, ...] = ()
    former: str = ""
    former_variable: str = ""
    least: int = 0
    most: int = 0


LAST_PORT = 65535
LOCAL_MODELS = ("ask", "on", "off")
MODEL_USES = ("auto", "server", "azure", "local", "copilot", "none")
MODEL_HELP = ("auto", "always", "never")
GITHUB_WRITES = ("off", "dry-run", "branch")
SANDBOXES = ("auto", "namespace", "landlock", "none")

SETTINGS = (
    Setting("port", "PORT", "number", "7071", "Port of the loopback listener.", least=1, most=LAST_PORT),
    Setting("name", "RAPPD_NAME", "text", "", "What this machine is called; empty takes the host's name."),
    Setting("soul_path", "SOUL_PATH", "text", "soul.md", "The soul, relative to the workspace."),
    Setting("agents_path", "AGENTS_PATH", "text", "agents", "The agents folder, relative to the workspace."),
    Setting("voice_mode", "VOICE_MODE", "switch", "off", "Answers carry a spoken form.", live=True),
    Setting("twin_mode", "TWIN_MODE", "switch", "off", "Answers carry the twin's comment.", live=True),
    Setting("voice_zip_password", "VOICE_ZIP_PASSWORD", "text", "", "Opens voice.zip.", secret=True, live=True),
    Setting("provider.use", "RAPPD_MODEL_USE", "choice", "auto", "Where answers come from; auto takes the first that is set up.",
            live=True, choices=MODEL_USES),
    Setting("provider.url", "OPENAI_BASE_URL", "address", "", "An OpenAI-compatible model server.", live=True),
    Setting("provider.key", "OPENAI_API_KEY", "text", "", "Key for provider.url.", secret=True, live=True),
    Setting("provider.model", "OPENAI_MODEL", "text", "", "Model to ask provider.url for.", live=True),
    Setting("provider.timeout", "RAPPD_MODEL_TIMEOUT", "number", "60", "Seconds of silence after which a model server is given up.",
            live=True, least=5, most=3600),
    Setting("provider.price_in_per_million", "RAPPD_PRICE_IN", "prices", "", "USD for a million tokens read, or MODEL=USD by comma.", live=True),
    Setting("provider.price_out_per_million", "RAPPD_PRICE_OUT", "prices", "", "The same for tokens written. Empty: no cost is told.", live=True),
    Setting("model", "RAPPD_MODEL", "text", "", "The model picked on a screen; empty is automatic.", live=True),
    Setting("provider.local", "RAPPD_LOCAL_MODELS", "choice", "ask", "A model server found here: ask, on, off.", live=True, choices=LOCAL_MODELS),
    Setting("provider.local_ports", "RAPPD_LOCAL_PORTS", "list", "11434,8080,8000,1234", "Ports where one is looked for.", live=True),
    Setting("provider.local_server", "RAPPD_LOCAL_SERVER", "text", "", "The one found that you said yes to.", live=True),
    Setting("models.help", "RAPPD_MODEL_HELP", "choice", "auto", "Keyword matching chooses agents for the model: auto, always, never.",
            live=True, choices=MODEL_HELP),
    Setting("github.token", "GITHUB_TOKEN", "text", "", "GitHub token with Copilot; else the sign-in, else gh.", secret=True, live=True),
    Setting("github.model", "GITHUB_MODEL", "text", "gpt-4o", "Model to ask GitHub Copilot for.", live=True),
    Setting("azure.endpoint", "AZURE_OPENAI_ENDPOINT", "address", "", "Azure OpenAI resource.", live=True),
    Setting("azure.deployment", "AZURE_OPENAI_DEPLOYMENT", "text", "", "Azure OpenAI deployment.", live=True),
    Setting("azure.key", "AZURE_OPENAI_API_KEY", "text", "", "Key for Azure OpenAI.", secret=True, live=True),
    Setting("azure.version", "AZURE_OPENAI_API_VERSION", "text", "2024-10-21", "Azure OpenAI API version.", live=True),
    Setting("llm_fake", "LLM_FAKE", "switch", "off", "Answer with a scripted model, for tests.", live=True),
    Setting("brainstem.rounds", "RAPPD_ROUNDS", "number", "3", "Model rounds in one turn.", live=True, least=1, most=100),
    Setting("models.result_characters", "RAPPD_RESULT_CHARACTERS", "number", "20000", "The most of an agent's result that a model is given.",
            live=True, least=200, most=1_000_000),
    Setting("agents.timeout", "RAPPD_AGENT_TIMEOUT", "number", "30", "Seconds one agent call may take.", live=True, least=1, most=86400),
    Setting("agents.memory_mb", "RAPPD_AGENT_MEMORY_MB", "number", "2048", "Memory limit of one worker, in MB.", least=256, most=1048576),
    Setting("agents.workers", "RAPPD_AGENT_WORKERS", "number", "4", "Workers one workspace may have at once.", least=1, most=1024),
    Setting("agents.install_packages", "RAPPD_INSTALL_PACKAGES", "switch", "on", "Install packages that agents declare.", live=True),
    Setting("agents.package_index", "RAPPD_PACKAGE_INDEX", "text", "", "Index to install packages from; empty: pip's.", secret=True, live=True),
    Setting("agents.model_calls", "RAPPD_AGENT_MODEL_CALLS", "number", "8", "Model calls one agent call may make.", live=True, least=0, most=1000),
    Setting("agents.sandbox", "RAPPD_SANDBOX", "choice", "auto", "Workers: auto, namespace, landlock or none.", choices=SANDBOXES),
    Setting("agents.may_write_code", "RAPPD_AGENTS_MAY_WRITE_CODE", "switch", "off", "Agents may write the code of their workspace."),
    Setting("agents.may_read", "RAPPD_AGENTS_MAY_READ", "list", "", "Hidden files of this account that agents may read: ~/.ssh, ~/.aws; * is all."),
    Setting("agents.must_declare", "RAPPD_AGENTS_MUST_DECLARE", "switch", "off",
            "Agents that do not declare what they need wait for approval; what this machine cannot hold to it does not run."),
    Setting("store.strict", "RAPPD_STORE_STRICT", "switch", "off",
            "Wait for the disk on every answer. Off: a power cut can cost the answers of the last second and of the sync after it."),
    Setting("http.origins", "RAPP_CORS_ORIGINS", "list", "", "Web origins that may call /chat, by comma.", live=True, former="door.origins"),
    Setting("http.open_surface", "RAPPD_OPEN_SURFACE", "switch", "off", "Structural routes need no operator.", former="door.open_surface"),
    Setting("http.tools", "RAPPD_HTTP_TOOLS", "switch", "off", "Serve /tether/* (HTTP tools).", former="door.http_tools"),
    Setting("http.body_mb", "RAPPD_BODY_MB", "number", "16", "Largest request body, in MB.", former="door.body_mb", least=1, most=4096),
    Setting("eggs.registry", "RAPPD_REGISTRY", "text", "", "Folder with a clone of the agent registry, for short texts of agents.", live=True),
    Setting("peers.listen", "RAPPD_PEERS_LISTEN", "switch", "on", "Listen for other machines.",
            former="peers.door", former_variable="RAPPD_PEERS_DOOR"),
    Setting("peers.port", "RAPPD_PEERS_PORT", "number", "7443", "Port of the listener for other machines; a taken one is replaced by a free one.",
            least=1, most=LAST_PORT),
    Setting("peers.address", "RAPPD_PEERS_ADDRESS", "text", "any",
            "Address of the listener for other machines; any: every IPv4 and IPv6 address."),
    Setting("listen.networks", "RAPPD_LISTEN_NETWORKS", "networks", "",
            "IPv6 networks beside this machine's own whose machines and phones may connect, as 2001:db8:5::/48 by comma."),
    Setting("peers.nearby", "RAPPD_NEARBY", "switch", "on", "Announce this machine on its networks and look for others."),
    Setting("peers.loopback", "RAPPD_PEERS_LOOPBACK", "switch", "off", "Look for machines on this one alone, for trials."),
    Setting("peers.keep_hours", "RAPPD_KEEP_HOURS", "number", "24", "Hours that a call or an egg waits for a machine that is away.", live=True,
            least=1, most=8760),
    Setting("neighborhood.ssh_config", "RAPPD_SSH_CONFIG", "text", "", "SSH configuration for snapshots; empty takes your own.", live=True),
    Setting("neighborhood.github_write", "RAPPD_GITHUB_WRITE", "choice", "off", "Restoring into a git neighborhood: off, dry-run, or as a branch.",
            live=True, choices=GITHUB_WRITES),
    Setting("estate.beacon", "RAPPD_ESTATE_BEACON", "switch", "off", "Serve your beacon and estate at /.well-known/ to this machine.", live=True),
    Setting("estate.github", "RAPPD_ESTATE_GITHUB", "text", "", "Your GitHub name, for a new estate."),
    Setting("estate.private", "RAPPD_ESTATE_PRIVATE", "text", "", "Where your private tier lies; only this text travels.", live=True),
    Setting("peers.pairing_seconds", "RAPPD_PAIRING_SECONDS", "number", "120", "Seconds that two machines have to pair.", least=1, most=600),
    Setting("tether.port", "RAPPD_TETHER_PORT", "number", "7072", "Port of the listener for phones; a taken one is replaced by a free one.",
            least=1, most=65535),
    Setting("tether.address", "RAPPD_TETHER_ADDRESS", "text", "any",
            "Address of the listener for phones; any: every IPv4 and IPv6 address."),
    Setting("tether.tls", "RAPPD_TETHER_TLS", "switch", "off",
            "Serve phones over https with this machine's own certificate, which browsers warn about. Phones pair anew after a change."),
    Setting("tether.window_seconds", "RAPPD_TETHER_WINDOW_SECONDS", "number", "120", "Seconds that a QR code lives.", live=True, least=1, most=600),
    Setting("programs.openai", "RAPPD_OPENAI", "switch", "on", "Answer programs that speak OpenAI's API.", live=True),
    Setting("programs.openai_agents", "RAPPD_OPENAI_AGENTS", "list", "",
            "Agents, and twins as twin/NAME, that programs on this machine may use over it; empty: all.", live=True),
    Setting("programs.ollama", "RAPPD_OLLAMA", "switch", "on", "Answer programs that speak Ollama's API.", live=True),
    Setting("programs.ollama_agents", "RAPPD_OLLAMA_AGENTS", "list", "",
            "Agents, and twins as twin/NAME, that programs on this machine may use over it; empty: all.", live=True),
    Setting("programs.mcp", "RAPPD_MCP", "switch", "on", "Answer programs that speak MCP.", live=True),
    Setting("programs.mcp_agents", "RAPPD_MCP_AGENTS", "list", "",
            "Agents, and twins as twin/NAME, that programs on this machine may use over it; empty: all.", live=True),
    Setting("programs.a2a", "RAPPD_A2A", "switch", "on", "Answer programs that speak A2A.", live=True),
    Setting("programs.a2a_agents", "RAPPD_A2A_AGENTS", "list", "",
            "Agents, and twins as twin/NAME, that programs on this machine may use over it; empty: all.", live=True),
    Setting("programs.acp", "RAPPD_ACP", "switch", "on", "Answer programs that speak the Agent Client Protocol.", live=True),
    Setting("programs.acp_agents", "RAPPD_ACP_AGENTS", "list", "",
            "Agents, and twins as twin/NAME, that programs on this machine may use over it; empty: all.", live=True),
    Setting("legacy.addresses", "RAPPD_LEGACY_ADDRESSES", "list", "", "Addresses that may use the legacy listener; empty keeps it closed."),
    Setting("legacy.scopes", "RAPPD_LEGACY_SCOPES", "list", "HELP.brainstem", "What they may do there: talk, and agents as HELP.brainstem.NAME."),
    Setting("notify.command", "RAPPD_NOTIFY_COMMAND", "text", "", "Program to run for each notice; gets what happened and what to do.", live=True),
    Setting("timers.zone", "RAPPD_TIMERS_ZONE", "text", "", "Time zone of timers, like Europe/Berlin; empty is this machine's.", live=True),
    Setting("timers.quiet", "RAPPD_TIMERS_QUIET", "text", "", "Quiet hours, as 22:00-07:00: notices of timers wait until they are over.", live=True),
    Setting("timers.model_calls", "RAPPD_TIMERS_MODEL_CALLS", "number", "100", "Model calls that timers may make in a day.",
            live=True, least=0, most=100_000),
    Setting("organism.rounds", "RAPPD_ORGANISM_ROUNDS", "number", "25",
            "Model rounds of a listener that a model drives, in one turn.", live=True, least=1, most=1000),
    Setting("organism.heartbeat_seconds", "RAPPD_ORGANISM_HEARTBEAT_SECONDS", "number", "0",
            "Seconds between heartbeats for listeners that take them; 0 is none.", live=True, least=0, most=86_400),
    Setting("organism.state_hours", "RAPPD_ORGANISM_STATE_HOURS", "number", "24",
            "Hours after which what listeners keep for a conversation without calls is forgotten.", live=True, least=1, most=8760),
    Setting("github.url", "RAPPD_GITHUB_URL", "address", "https://github.com", "Where sign-in happens."),
    Setting("github.api", "RAPPD_GITHUB_API", "address", "https://api.github.com", "GitHub's API."),
    Setting("github.raw", "RAPPD_GITHUB_RAW", "address", "https://raw.githubusercontent.com", "Where sources are fetched from."),
)  # fmt: skip

BY_NAME = {setting.name: setting for setting in SETTINGS}
BY_FORMER_NAME = {setting.former: setting for setting in SETTINGS if setting.former}
BY_VARIABLE = {setting.variable: setting for setting in SETTINGS}

OTHER_SECRETS = (
    "COPILOT_TOKEN",
    "GH_TOKEN",
    "GITHUB_COPILOT_TOKEN",
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_KEY",
)
"""Provider tokens that the daemon does not read itself but keeps from its workers all the same."""
