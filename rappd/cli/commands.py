"""The commands of ``rappd``: where each is implemented, its line in the help, and the group that it stands in."""

GROUPS = {
    "This machine": ("start", "stop", "status", "open", "service", "config", "doctor", "logs"),
    "Talk and agents": ("chat", "models", "agents", "rapps", "cartridge", "threads", "notices"),
    "Twins and eggs": ("twins", "egg", "estate", "backup", "restore"),
    "Other programs": ("token", "mcp", "acp", "xml"),
    "Machines and phones": (
        *("peers", "call", "outbox", "neighborhood", "fleet"),
        *("pair", "devices", "sessions", "workflows"),
    ),
    "Help": ("demo", "help", "completion"),
}

COMMANDS = {
    "start": ("rappd.cli.start:start", "Start this machine's brainstem."),
    "open": ("rappd.features.operator.cli:open_", "Print a link that opens the page as its operator."),
    "stop": ("rappd.features.operator.cli:stop", "Stop it."),
    "status": ("rappd.features.operator.cli:status", "Is it running, and what does it think with?"),
    "doctor": ("rappd.cli.doctor:doctor", "Look for problems; each comes with its fix."),
    "chat": ("rappd.features.conversations.cli:chat", "Talk. Without TEXT, a conversation."),
    "models": ("rappd.features.models.cli:models", "See which model answers, and choose another."),
    "agents": ("rappd.features.agents.cli:agents", "List, add, write, test, run and approve agents."),
    "rapps": ("rappd.features.rapps.cli:rapps", "List, install and uninstall rapplications."),
    "twins": ("rappd.features.twins.cli:twins", "Manage twins: chat, start, fork, archive."),
    "peers": ("rappd.features.peers.cli:peers", "Other machines: see, pair, share, revoke."),
    "pair": ("rappd.features.devices.pairing_cli:pair", "Let a phone join by a QR code."),
    "devices": ("rappd.features.devices.cli:devices", "Phones that joined: list, rename, scopes, revoke."),
    "workflows": ("rappd.features.workflows.cli:workflows", "Run steps in a session, one after the other."),
    "sessions": (
        "rappd.features.sessions.cli:sessions",
        "Conversations with phones: show, say, branch, close.",
    ),
    "call": ("rappd.features.calls.cli:call", "Ask another machine, or one of its agents."),
    "outbox": ("rappd.features.calls.outbox_cli:outbox", "What waits for machines that are away."),
    "mcp": ("rappd.features.programs.stdio_cli:mcp", "Let desktop programs use your agents, by MCP."),
    "acp": ("rappd.features.programs.stdio_cli:acp", "Let editors talk with your brainstem, by ACP."),
    "xml": ("rappd.features.programs.xml_cli:xml", "Send messages in XML to a machine."),
    "token": ("rappd.features.tokens.cli:token", "Let a program call this machine."),
    "egg": ("rappd.features.eggs.cli:egg", "Pack what lives here into a file; hatch such files."),
    "estate": ("rappd.features.estate.cli:estate", "What is yours, by its rappid; as one egg."),
    "neighborhood": (
        "rappd.features.neighborhoods.cli:neighborhood",
        "All machines: back up, plan, hatch; shared places.",
    ),
    "fleet": ("rappd.features.fleet.cli:fleet", "All your machines at once: status, archive_estate."),
    "cartridge": (
        "rappd.features.cartridges.cli:cartridge",
        "Run agents that are files; freeze them, carry them on.",
    ),
    "demo": ("rappd.cli.demo:demo", "Watch three machines meet, help, and lose nothing."),
    "threads": (
        "rappd.features.threads.cli:threads",
        "What was said: list, search, show, rename, export, verify, witness, accept.",
    ),
    "notices": ("rappd.features.notices.cli:notices", "What happened while you were away."),
    "logs": ("rappd.features.operator.cli:logs", "Show the log."),
    "backup": ("rappd.cli.backup:backup", "Write the whole home into one file."),
    "restore": ("rappd.cli.backup:restore", "Bring a backup back, into an empty home."),
    "config": ("rappd.features.settings.cli:config", "Show and change settings."),
    "service": ("rappd.cli.service:service", "Keep it running after you log out."),
    "help": ("rappd.cli.help:help_", "Show the help of a command."),
    "completion": ("rappd.cli.completion:completion", "Print shell completion."),
}
