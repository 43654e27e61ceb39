"""Operations on agents of the brainstem, or of a ``twin``: list, read, edit, approve, run and remove them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from agents.contract.may_run import SHIPPED
from agents.contract.scaffold import scaffold
from agents.runtimes.python.pools.use_log import UseRow
from agents.runtimes.python.sandbox.needs import in_words, unheld
from agents.storage.safe_fs import in_file_pool
from rappd.daemon.rate_limit import RateLimit
from rappd.dispatch.rights import Caller
from rappd.errors import NotFoundError
from rappd.features.arguments import MissingArgumentError
from rappd.features.operation import ANYBODY, OWNER, Download, FormFile, Text, agent_operation, operation
from rappd.tenants.agent_admin import AgentSource, HeldFile
from rappd.tenants.agent_editor import AgentChange, GenerationRow
from rappd.tenants.agent_summary import AgentRow, listing
from rappd.tenants.tenant import AgentRan, Tenant, reference_to


class AgentCard(AgentRow):
    """An agent; ``ssh_keys``: it can use the owner's SSH keys."""

    ssh_keys: bool


class AgentFile(TypedDict):
    """An agent file, and the agents that it holds; ``cards`` tell what a screen needs about each."""

    filename: str
    agents: list[str]
    cards: list[AgentCard]


class AgentNeeds(TypedDict):
    """The needs of an agent, and what its calls asked for."""

    name: str
    file: str
    needs: dict[str, list[str]] | None
    reach: list[str]
    unheld: str
    exceeded: int
    uses: list[UseRow]


class Generations(TypedDict, total=False):
    """Earlier versions of an agent file, or the text of one."""

    generations: list[GenerationRow]
    generation: int
    source: str


class Tested(TypedDict):
    """The contract tests of an agent; ``passed`` is there for a text that is not saved."""

    tests: list[dict[str, Any]]
    passed: NotRequired[bool]


class AgentOperations:
    """``filename``: an agent file's path below its folder; often an agent's name will do."""

    def __init__(
        self, ssh_keys: Callable[[], bool], imports: RateLimit, approved: Callable[[], None]
    ) -> None:
        """``ssh_keys``: whether agents reach keys of SSH; looks at the disk. ``approved`` is told that something was."""
        self._ssh_keys, self._imports, self._approved = ssh_keys, imports, approved

    @operation("agents.list", "GET", "/agents", right=ANYBODY, of_tenant=True, answers="files")
    async def listing(self, tenant: Tenant) -> list[AgentFile]:
        """Agent files and the agents they hold; `cards` tells what a screen needs about each.

        `ssh_keys` at a card: this agent, which did not come with rappd, can use your SSH keys. `reach`: what its needs come
        to, in words; `unheld`: why this machine cannot hold it to them; `exceeded`: calls that were refused something.
        """
        ssh_keys = await in_file_pool(self._ssh_keys)
        files: dict[tuple[str, str], AgentFile] = {}
        for row in listing(tenant.registry, tenant.runner.uses, tenant.sandbox):
            file = files.setdefault(
                (row["origin"], row["file"]), {"filename": row["file"], "agents": [], "cards": []}
            )
            if row["name"]:
                file["agents"].append(row["name"])
            reaches_keys = ssh_keys and row["origin"] != SHIPPED and row["needs"] is None
            file["cards"].append({**row, "ssh_keys": reaches_keys})
        return list(files.values())

    @operation("agents.needs", "GET", "/agents/needs/{name:.+}", right=OWNER, of_tenant=True)
    async def needs(self, tenant: Tenant, name: str) -> AgentNeeds:
        """The needs of an agent, and `uses`: what its calls asked for, refused things first."""
        agent = tenant.registry.named(name)
        if agent is None:
            raise NotFoundError(f'No agent "{name[:80]}".', do="rappd agents list")
        uses = tenant.runner.uses.of(agent.origin, agent.file.rel, agent.sha256)
        return {
            "name": agent.name,
            "file": agent.file.rel,
            "needs": agent.needs.as_json() if agent.needs is not None else None,
            "reach": in_words(agent.needs),
            "unheld": unheld(agent.needs, tenant.sandbox),
            "exceeded": uses.exceeded,
            "uses": uses.rows(),
        }

    @operation("agents.held", "GET", "/agents/held", right=OWNER, of_tenant=True, answers="held")
    async def held(self, tenant: Tenant) -> list[HeldFile]:
        """Quarantined code of agents, services and senses, and a quarantined `.env`: `path`, `why`, `origin`, `at`, `sha256`."""
        return await tenant.admin.held()

    @agent_operation("agents.list", of_tenant=True, answers="agents")
    async def agents_list(self, tenant: Tenant) -> list[AgentRow]:
        """The agents, a row each, as agents see them."""
        return listing(tenant.registry)

    @agent_operation("agents.source", of_tenant=True)
    async def source_for_agents(self, tenant: Tenant, filename: str = "", name: str = "") -> AgentSource:
        """An agent file's text, by its file or an agent's ``name``; no values of a quarantined `.env`."""
        return await tenant.admin.source(filename or name)

    @agent_operation("agents.write", of_tenant=True)
    async def write(
        self,
        tenant: Tenant,
        filename: str = "",
        source: str = "",
        reason: str = "",
        molt: bool = False,
        replace: bool = False,
    ) -> AgentChange:
        """Writes an agent file that loads; another one of that name is replaced with ``molt`` or ``replace`` alone."""
        return await tenant.admin.write(
            filename, source.encode(), reason=reason, molt=molt, replace=molt or replace
        )

    @agent_operation("agents.restore", of_tenant=True)
    async def restore(self, tenant: Tenant, filename: str, generation: int) -> AgentChange:
        """Puts an earlier version back in service."""
        return await tenant.admin.restore(filename, generation)

    @operation("agents.source", "GET", "/agents/source/{filename:.+}", right=OWNER, of_tenant=True)
    async def source(self, tenant: Tenant, filename: str) -> AgentSource:
        """An agent file's text; `fault` what is wrong with it, `read_only` why it cannot be edited."""
        return await tenant.admin.source(filename, with_values=True)

    @operation("agents.save", "PUT", "/agents/source/{filename:.+}", right=OWNER, of_tenant=True)
    async def save(
        self, tenant: Tenant, filename: str, source: Text, base: str = "", keep: bool = False
    ) -> AgentChange:
        """Saves an edited file: `source`, and `base`, the SHA-256 of what was read, else 409. With `keep` faulty text, too; it does not run."""
        self._imports.take()
        return await tenant.admin.editor.save(filename, source.encode(), base=base, keep_faulty=keep)

    @operation("agents.export", "GET", "/agents/export/{filename:.+}", right=OWNER, of_tenant=True)
    async def export(self, tenant: Tenant, filename: str) -> Download:
        """An agent file as a download."""
        source = await tenant.admin.exported(filename)
        name = Path(source["file"].rsplit("/", 1)[-1])
        return Download(name, source["source"].encode(), "text/x-python; charset=utf-8")

    @operation(
        "agents.generations",
        "GET",
        "/agents/generations/{filename:.+}",
        right=OWNER,
        of_tenant=True,
        agents="agents.generations",
    )
    async def generations(self, tenant: Tenant, filename: str, generation: int | None = None) -> Generations:
        """Earlier versions of an agent file, oldest first; with `generation`, the text of that one as `source`."""
        editor = tenant.admin.editor
        if generation is not None:
            source = await editor.generation(filename, generation)
            return {"generation": generation, "source": source}
        return {"generations": await editor.generations(filename)}

    @operation("agents.undo", "POST", "/agents/undo", right=OWNER, of_tenant=True)
    async def undo(self, tenant: Tenant, undo: Text) -> AgentChange:
        """Brings a removed file back."""
        return await tenant.admin.undo(undo)

    @operation("agents.approve", "POST", "/agents/approve", right=OWNER, of_tenant=True)
    async def approve(
        self, tenant: Tenant, filename: Text, sha256: str = "", waits: bool = False
    ) -> AgentChange:
        """Lets the present bytes of a quarantined file run; of any other, change structure. With the `sha256` that was read, no others.

        With `waits` only what is quarantined still.
        """
        done = await tenant.admin.approve(filename, sha256, waiting_only=waits)
        self._approved()
        return done

    @operation("agents.refuse", "POST", "/agents/refuse", right=OWNER, of_tenant=True)
    async def refuse(self, tenant: Tenant, filename: Text) -> AgentChange:
        """Takes a quarantined file out of its place; the answer's `undo` brings it back, quarantined as before."""
        return await tenant.admin.refuse(filename)

    @operation("agents.new", "POST", "/agents/new", right=OWNER, of_tenant=True)
    async def new(
        self,
        tenant: Tenant,
        name: str = "",
        description: str = "",
        filename: str = "",
        source: str = "",
        listener: bool = False,
    ) -> AgentChange:
        """Writes a new agent file, refusing to replace one: `filename` and `source`, or `name` and `description` for one to fill in.

        `listener`: the one to fill in is a listener.
        """
        if name:
            filename, source = scaffold(name, description, listener=listener)
        if not (filename and source):
            raise _missing("source" if filename else "filename", "name")
        write: Awaitable[AgentChange] = tenant.admin.write(
            filename, source.encode(), reason="new", replace=False, by_operator=True
        )
        return await write

    @operation("agents.take_in", "POST", "/agents/import", right=OWNER, of_tenant=True)
    async def take_in(self, tenant: Tenant, file: FormFile, keep: bool = False) -> AgentChange:
        """Takes in one agent file after it loaded in a worker: field `file` of a form; with `keep` a faulty one, too, which does not run."""
        self._imports.take()
        return await tenant.admin.write(
            file.name, file.content, reason="imported", by_operator=True, keep_faulty=keep
        )

    @operation("agents.test", "POST", "/agents/test", right=OWNER, of_tenant=True)
    async def test(
        self,
        tenant: Tenant,
        caller: Caller,
        agent: str = "",
        filename: str = "",
        source: str | None = None,
        path: str = "",
    ) -> Tested:
        """Runs the contract tests over one `agent`, or over a text that is not saved: `filename` and `source`.

        Over the control socket also over the file at a `path`, wherever it lies.
        """
        if source is not None:
            if not (filename and source):
                raise _missing("source" if filename else "filename")
            draft = await tenant.admin.editor.test(filename, source.encode())
            return {"tests": draft["tests"], "passed": draft["passed"]}
        if path and caller.listener == "control":
            found = await tenant.test_file(await in_file_pool(reference_to, Path(path)))
            return {"tests": found["tests"]}
        if not agent:
            raise _missing("agent")
        return {"tests": await tenant.test_agent(agent)}

    @operation("agents.run", "POST", "/agents/run", right=OWNER, of_tenant=True)
    async def run(self, tenant: Tenant, agent: Text, args: dict[str, Any] | None = None) -> AgentRan:
        """Runs one agent with given arguments, as a recorded call."""
        return await tenant.run_agent(agent, args or {})

    @operation(
        "agents.remove",
        "DELETE",
        "/agents/{filename:.+}",
        right=OWNER,
        of_tenant=True,
        agents="agents.remove",
    )
    async def remove(self, tenant: Tenant, filename: str) -> AgentChange:
        """Takes an agent file out of service; the answer's `undo` brings it back."""
        return await tenant.admin.remove(filename)


def _missing(name: str, proposed: str = "") -> MissingArgumentError:
    return MissingArgumentError(f"{name} is required", do=f'Send {{"{proposed or name}": "…"}}.')
