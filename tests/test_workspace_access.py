"""Only ``agents/storage/safe_*`` opens, lists, writes and moves what lies in a workspace.

The source of every module that runs in the daemon or the command line is searched for calls that follow
links. A module that needs such calls is named below with its reason; it touches no workspace with them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PACKAGES = ("envelopes", "agents", "twins", "neighborhoods", "rappd")

IN_WORKERS = (
    "agents/library/", "agents/rapps/dashboard/", "agents/rapps/kanban/", "agents/rapps/webhook/",
    "agents/compat/", "agents/runtimes/lispy/", "agents/basic_agent.py", "agents/contract/loading.py",
    "agents/runtimes/python/worker/quarantined_imports.py", "agents/runtimes/python/worker/worker_requests.py", "agents/contract/contract_tests.py",
)  # fmt: skip
"""Code that runs inside a worker: the sandbox decides what it reaches."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "is the module for workspaces, or goes down from a folder that it opened": (
        "agents/storage/json_store.py",
        "agents/storage/safe_fs.py",
        "agents/storage/safe_open.py",
        "agents/storage/safe_walk.py",
        "agents/runtimes/python/worker/worker_watch.py",
        "twins/workspace/fork.py",
    ),
    "runs in a worker, or reads the program's own files": (
        "rappd/listeners/phone_page.py",
        "rappd/listeners/web_assets.py",
        "agents/rapps/shipped_bundle.py",
        "rappd/sessions/replay_page.py",
        "agents/contract/file_discovery.py",  # the shipped library
        "agents/contract/shipped_descriptions.py",
        "twins/eggs/writers/vendor_key_shapes.py",  # the data file beside it
        "rappd/store/schema.py",  # the data file beside it
        "agents/moments/vocabulary.py",  # the data file beside it
        "agents/runtimes/python/sandbox/seccomp.py",  # the data file beside it
        "twins/eggs/writers/exclusions.py",  # the data file beside it
        "agents/contract/scaffold.py",  # the templates beside it
        "agents/providers/refusals.py",  # the data file beside it
        "agents/providers/offline/spoken_commands.py",  # the data file beside it
        "agents/providers/offline/vocabulary.py",  # the data file beside it
        "neighborhoods/snapshot/transports/shell_scripts.py",  # the scripts beside it
        "agents/runtimes/python/pools/use_log.py",  # its file lies where no worker can write
        "rappd/sessions/workflows/library.py",
        "agents/runtimes/python/worker/service_files.py",  # the part that runs a service
        "agents/runtimes/python/worker/spawn.py",
        "agents/runtimes/python/sandbox/landlock.py",
        "agents/runtimes/python/sandbox/namespaces.py",
    ),
    "unpacks octets that were read already, in memory": ("twins/eggs/writers/archive_scan.py",),
    "looks at /dev, /proc, and names in the account's home, never into a workspace": (
        "agents/runtimes/python/sandbox/namespace_fork.py",
        "agents/runtimes/python/sandbox/confinement.py",  # and at the first line of programs
        "agents/runtimes/python/sandbox/devices.py",
        "agents/runtimes/python/sandbox/private_paths.py",
        "agents/runtimes/python/sandbox/ssh_key_warning.py",
        "neighborhoods/auth/allowed_networks.py",
        "rappd/__main__.py",
    ),
    "installs packages: from descriptors of .deps, and in a sandbox": (
        "agents/packages/package_folder.py",
        "agents/packages/sandboxed_installer.py",
    ),
    "reads and sets what the kernel shows of processes, or tries a sandbox in a folder of its own": (
        "agents/runtimes/python/pools/started_processes.py",
        "agents/runtimes/python/pools/call.py",  # processes that a call left behind
        "agents/programs/programs.py",
        "agents/runtimes/python/sandbox/cgroup_limit.py",
        "agents/runtimes/python/sandbox/process_limits.py",
        "agents/runtimes/python/sandbox/syscalls.py",
        "agents/runtimes/python/sandbox/protected_paths.py",
        "agents/runtimes/python/network/tcp_owners.py",
        "agents/runtimes/python/worker/worker_main.py",
        "agents/runtimes/python/sandbox/sandbox.py",
        "agents/runtimes/python/worker/zygote.py",
        "rappd/diagnostics/agents.py",
        "rappd/diagnostics/home.py",
        "rappd/daemon/ports.py",
    ),
    "keeps files of the home's own, where no worker can write": (
        "agents/providers/secret_file.py",
        "neighborhoods/discovery/peers_file.py",
        "neighborhoods/places/estate_file.py",
        "neighborhoods/places/memberships.py",
        "neighborhoods/places/place.py",
        "rappd/features/neighborhoods/places.py",
        "rappd/daemon/open_home.py",
        "rappd/listeners/open_listeners.py",
        "rappd/daemon/home.py",
        "rappd/daemon/log.py",
        "rappd/federation/node_identity.py",
        "rappd/federation/totp_secrets.py",
        "rappd/features/organism/operations.py",
        "rappd/organism/organism_in_force.py",
        "rappd/organism/schemas.py",
        "rappd/features/webhooks/webhooks.py",  # and a folder that its owner chose, following no link there
        "rappd/settings/files.py",
        "rappd/tether/devices.py",
        "rappd/tether/host_key.py",
        "rappd/store/anchor_file.py",
        "rappd/store/connections.py",
        "rappd/store/write_ahead_log.py",
        "rappd/store/former_journal.py",
        "rappd/daemon/startup.py",
        "rappd/tenants/autostart.py",
        "twins/trust/trust.py",
        "twins/trust/quarantine.py",
        "twins/trust/signers.py",
        "neighborhoods/snapshot/token_uses.py",  # beside them, in the home
        "agents/storage/atomic_write.py",  # write_atomically itself
    ),
    "lists, moves and deletes whole folders of twins, whose parent no worker can write": (
        "twins/fs/remove_tree.py",
        "twins/lifecycle/state_index.py",
        "twins/lifecycle/archive_moves.py",
        "twins/lifecycle/recovery.py",
        "twins/lifecycle/trash_migration.py",
        "twins/workspace/lineage.py",
        "twins/workspace/listing.py",
        "twins/fs/refused_links.py",
    ),
    "keeps eggs, checkpoints and receipts in the home, or builds in a staging folder there": (
        "neighborhoods/snapshot/drill.py",
        "rappd/features/estate/operations.py",
        "rappd/features/estate/hatching.py",
        "twins/eggs/nested_eggs.py",
        "neighborhoods/snapshot/snapshot_folder.py",
        "neighborhoods/snapshot/staged_parts.py",
        "neighborhoods/snapshot/file_times.py",
        "rappd/features/snapshots/restoring.py",
        "neighborhoods/snapshot/tar_archive.py",
        "neighborhoods/snapshot/transports/same_home.py",
        "neighborhoods/snapshot/transports/ssh.py",
        "neighborhoods/snapshot/transports/ssh_connections.py",
        "neighborhoods/snapshot/transports/twin_folder.py",
        "rappd/federation/outgoing_eggs.py",
        "rappd/features/snapshots/member_eggs.py",
        "rappd/features/eggs/received.py",
        "rappd/features/eggs/packing.py",
        "rappd/features/eggs/transfer.py",
        "rappd/features/sessions/packing.py",
        "rappd/features/eggs/uploaded_eggs.py",
        "twins/workspace/checkpoints.py",
        "twins/zip/extracting.py",
        "twins/zip/chunks.py",
        "twins/zip/archive_bounds.py",
        "twins/eggs/extracting.py",
        "twins/eggs/readers/detect.py",
        "twins/eggs/writers/pack.py",
        "twins/fs/atomic_file.py",
        "twins/eggs/encryption.py",
        "twins/workspace/checkpoint_restore.py",
        "twins/fs/file_transaction.py",
        "twins/installer/restored_conversations.py",
        "twins/installer/placement_rules.py",
        "twins/installer/hatching.py",
        "twins/installer/installer.py",
        "twins/installer/former_data.py",
        "twins/installer/receipts.py",
        "twins/installer/staging.py",
        "twins/installer/rollback.py",
        "twins/merge/egg_merge.py",
        "twins/workspace/new_twin_staging.py",
    ),
    "lists a whole home, or makes one anew; workspaces in it are read with SafeTree": (
        "rappd/backup/create.py",
        "rappd/backup/restore.py",
    ),
    "reads or writes a file that the operator named": (
        "rappd/features/organism/cli.py",
        "agents/rapps/rapplication.py",  # a zip
        "rappd/features/agents/cli.py",
        "rappd/cli/backup.py",
        "rappd/features/eggs/merge_cli.py",
        "rappd/features/conversations/picture_files.py",
        "rappd/cli/service.py",
        "rappd/features/threads/cli.py",
        "rappd/features/twins/cli.py",
        "rappd/features/workflows/cli.py",
        "rappd/features/cartridges/file_actions.py",
        "rappd/features/eggs/merging.py",
        "twins/cartridges/cartridge_io.py",
    ),
    "is the command line with its own terminal, log and process file": (
        "rappd/cli/app.py",
        "rappd/features/operator/cli.py",
        "rappd/cli/start.py",
    ),
    "fills the home of a demonstration before its daemon starts": ("rappd/demo/node.py",),
}
"""Reason to the modules that it allows such calls."""

_METHODS = frozenset(
    {
        "read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "glob", "rglob", "mkdir", "unlink", "rmdir",
        "touch", "chmod", "symlink_to", "hardlink_to",
    }
)  # fmt: skip
"""Calls of a ``Path`` that reach the disk, by a name that little else has."""
_OS = frozenset(
    {
        "open", "scandir", "listdir", "walk", "mkdir", "makedirs", "unlink", "remove", "rename", "replace", "rmdir",
        "link", "symlink", "readlink", "utime", "chmod", "chown", "truncate", "mkfifo",
    }
)  # fmt: skip
_FUNCTIONS = frozenset({"open", "write_atomically", "rmtree", "copytree", "copyfile", "copy2", "move"})
_MODES = ("r", "w", "a", "x")


def unsafe_calls(source: str) -> Iterator[tuple[int, str]]:
    """(line, call) of each call that may follow a link."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _is_unsafe(node):
            yield node.lineno, ast.unparse(node.func)


def _is_unsafe(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in _FUNCTIONS
    if not isinstance(function, ast.Attribute):
        return False
    of = function.value.id if isinstance(function.value, ast.Name) else ""
    if of == "os":
        return function.attr in _OS
    if of == "shutil":
        return function.attr not in ("disk_usage", "which", "get_terminal_size", "copyfileobj")
    if function.attr == "open":
        return _has_a_mode(call)
    if function.attr in ("rename", "replace"):  # of a path: to one other path
        return len(call.args) == 1 and not call.keywords and not _is_of_a_pool(function.value)
    return function.attr in _METHODS or (of == "zipfile" and function.attr == "ZipFile")


def _has_a_mode(call: ast.Call) -> bool:
    if not call.args:
        return any(keyword.arg == "mode" for keyword in call.keywords)
    first = call.args[0]
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value[:1] in _MODES


def _is_of_a_pool(of: ast.expr) -> bool:
    """True for worker pools, which replace their workers."""
    return ast.unparse(of) in ("self", "self._crew")


@cache
def _modules() -> list[tuple[str, list[tuple[int, str]]]]:
    paths = [path for package in PACKAGES for path in sorted((PROJECT / package).rglob("*.py"))]
    return [
        (name, list(unsafe_calls(path.read_text())))
        for path in paths
        if not (name := path.relative_to(PROJECT).as_posix()).startswith(IN_WORKERS)
    ]


def test_daemon_touches_workspaces_through_one_module() -> None:
    allowed = {name for names in ALLOWED.values() for name in names}
    found = [
        f"{name}:{line} calls {call}: use Workspace.files, or name the module here with its reason"
        for name, calls in _modules()
        if name not in allowed
        for line, call in calls
    ]
    assert found == []


def test_allow_list_names_each_module_once_and_none_in_vain() -> None:
    listed = [name for names in ALLOWED.values() for name in names]
    assert len(listed) == len(set(listed))
    needed = {name for name, calls in _modules() if calls}
    assert sorted(set(listed) - needed) == [], "these need no exception any more"


@pytest.mark.parametrize(
    "source",
    [
        "open('x')", "path.read_text()", "path.write_bytes(b'')", "shutil.rmtree(x)", "os.open(x, 0)", "a.open('rb')",
        "a.open(mode='w')", "path.rename(other)", "path.replace(other)", "folder.iterdir()", "os.walk(x)",
        "write_atomically(x, b'')", "zipfile.ZipFile(x)",
    ],
)  # fmt: skip
def test_unsafe_call_is_found(source: str) -> None:
    assert list(unsafe_calls(source))


@pytest.mark.parametrize(
    "source",
    [
        "files.read(x)", "files.open(x)", "text.replace('a', 'b')", "files.rename(a, b)", "msgspec.structs.replace(a, b=1)",
        "store.open()", "shutil.which('x')",
    ],
)  # fmt: skip
def test_safe_call_is_passed_over(source: str) -> None:
    assert not list(unsafe_calls(source))
