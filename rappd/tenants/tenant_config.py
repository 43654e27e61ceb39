"""The configuration of a workspace: folders of its agents, its workers, its switches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import agents.library
from agents.contract.agent import Folder
from agents.contract.may_run import SHIPPED, YOURS, origin_of
from agents.runtimes.python.pools.config import Limits, PoolConfig, ReadOnlyPath
from agents.runtimes.python.sandbox.needs import unheld
from agents.runtimes.python.sandbox.private_paths import PrivatePaths
from agents.runtimes.python.sandbox.protected_paths import home_folders
from agents.runtimes.python.sandbox.sandbox import MOUNT_NAMESPACE
from rappd.settings.load import Settings, check, worker_environment
from rappd.tenants.workspace_variables import MayRun, worker_variables
from twins.cartridges.buddy_store import is_buddy
from twins.trust.needs_rules import MUST_DECLARE, ScopeRules
from twins.workspace.sources import Sources
from twins.workspace.workspace import DEFAULT_SOUL, PLACEHOLDERS, Workspace

if TYPE_CHECKING:
    from agents.packages import install_packages
    from agents.runtimes.python.pools.supervisor import WorkerSupervisor

OF_BUDDIES = frozenset({"buddy_agent.py"})
"""Shipped agents that only a buddy has."""


class TenantSettings(msgspec.Struct):
    """The switches of one tenant's turns, and what one agent call may take."""

    voice: bool
    twin: bool
    rounds: int
    call_seconds: float
    result_characters: int

    @classmethod
    def from_settings(cls, settings: Settings) -> TenantSettings:
        """The values in force."""
        return cls(
            settings.on("voice_mode"),
            settings.on("twin_mode"),
            settings.number("brainstem.rounds"),
            float(settings.number("agents.timeout")),
            settings.number("models.result_characters"),
        )


class PackageSettings(msgspec.Struct, frozen=True):
    """Settings for the packages that agents declare: ``allowed``, and where they come from."""

    allowed: bool
    index: str
    sandbox: str
    private_root: Path

    @classmethod
    def from_settings(cls, settings: Settings, *, private_root: Path) -> PackageSettings:
        """The values in force."""
        allowed = settings.on("agents.install_packages")
        return cls(allowed, settings.text("agents.package_index"), sandbox_wish(settings), private_root)

    def source(self) -> install_packages.PackageSource:
        """The same for the installer."""
        from agents.packages import install_packages  # rarely needed, and every start would pay for it

        return install_packages.PackageSource(self.index, self.sandbox, (self.private_root,))


def pool_config(
    workspace: Workspace,
    settings: Settings,
    private_root: Path,
    may_run: MayRun,
) -> PoolConfig:
    """The plan by which the workers of a workspace are started. Reads its ``.env``, unless that is held."""
    return PoolConfig(
        workspace=workspace.root,
        settings={
            "workspace": str(workspace.root),
            "agents_dir": str(workspace.agents),
            "data_dir": str(workspace.data),
            "deps_dir": str(workspace.deps),
        },
        env=worker_environment(settings.environment, worker_variables(workspace, may_run)),
        private_root=private_root,
        read_only=() if settings.on("agents.may_write_code") else read_only_paths(workspace),
        limits=Limits(memory=settings.number("agents.memory_mb") << 20),
        max_workers=settings.number("agents.workers"),
    )


def trusted_plan(plan: PoolConfig) -> PoolConfig:
    """The same for workers of trusted agents.

    Modules of the workspace's packages, which every agent can write, never take the place of the standard
    library's there.
    """
    return replace(plan, trusted=True, settings={**plan.settings, "deps_last": True})


def read_only_paths(workspace: Workspace) -> tuple[ReadOnlyPath, ...]:
    """The paths that decide which code of a workspace runs, what its model is told, and what a restore brings back."""
    folders = (
        *(workspace.agents, workspace.services, workspace.organs, workspace.senses, workspace.rapps),
        *(
            workspace.root / "utils",
            workspace.workflows,
            workspace.sources,
            workspace.kept,
            workspace.data / "soul_history",
        ),
    )
    return (
        *(ReadOnlyPath(folder, folder=True) for folder in folders),
        ReadOnlyPath(workspace.soul, content=DEFAULT_SOUL),
        *(ReadOnlyPath(workspace.root / name, content=text.decode()) for name, text in PLACEHOLDERS.items()),
        *(ReadOnlyPath(workspace.root / name) for name in ("rappid.json", "voice.zip")),
    )


def scope_rules(settings: Settings, supervisor: WorkerSupervisor) -> ScopeRules:
    """The rules for what code declares that it needs; ``supervisor`` knows what the sandbox can hold."""
    private = PrivatePaths(home_folders(os.environ), settings.items("agents.may_read"), system=True)
    return ScopeRules(
        settings.on(MUST_DECLARE),
        lambda needs: private.named([*needs.folders["read"], *needs.folders["write"]]),
        lambda needs: unheld(needs, supervisor.sandbox_report()),
    )


def sandbox_wish(settings: Settings) -> str:
    """The kind of sandbox that ``agents.sandbox`` asks for. Raises ``UsageProblemError`` for any other text."""
    value = settings.value("agents.sandbox")
    wish = check(value.setting, value.text)
    return MOUNT_NAMESPACE if wish == "namespace" else wish


def folders_of(workspace: Workspace, sources: Sources) -> Sequence[Folder]:
    """Returns the folders of a workspace's agents; later ones win over earlier ones that claim the same name."""
    others = frozenset() if is_buddy(workspace) else OF_BUDDIES
    files = workspace.files
    return [
        Folder(SHIPPED, Path(agents.library.__path__[0]), but=others),
        *(
            Folder(origin_of(source.name), source.folder, source.enabled, files=files)
            for source in sources.all()
        ),
        Folder(YOURS, workspace.agents, files=files),
    ]
