"""``$RAPP_HOME``: where everything of this machine's daemon lies, readable by its owner alone."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import socket
from dataclasses import dataclass
from pathlib import Path

from agents.storage.atomic_write import write_atomically
from envelopes.identity.keys import IdentityKey
from rappd.daemon.home_check import find_obstacle
from rappd.errors import ConflictError, RappdError

USUAL = ".rapp"
OPERATOR_KEY = "operator.key"
_WORKS = "works"
_SOCKET_PATH_LIMIT = 100  # sun_path holds 108 bytes


@dataclass(slots=True, frozen=True)
class Home:
    """Paths under one home folder. Creating the object touches nothing."""

    root: Path

    @classmethod
    def here(cls) -> Home:
        """The home that ``RAPP_HOME`` names, or ``~/.rapp``."""
        named = os.environ.get("RAPP_HOME", "").strip()
        return cls(Path(named).expanduser().absolute() if named else Path.home() / USUAL)

    @property
    def config(self) -> Path:
        """Settings, without secrets."""
        return self.root / "rappd.toml"

    @property
    def env_file(self) -> Path:
        """The daemon's own secrets: model keys and tokens."""
        return self.root / ".env"

    @property
    def database(self) -> Path:
        """The store."""
        return self.root / "rappd.db"

    @property
    def keys(self) -> Path:
        """Keys and sign-in tokens, 0700."""
        return self.root / "keys"

    @property
    def token_uses(self) -> Path:
        """The list of variables with tokens, and the hosts that get them."""
        return self.root / "token_uses.json"

    @property
    def signers(self) -> Path:
        """The list of trusted signers of eggs."""
        return self.root / "signers.json"

    @property
    def brainstem(self) -> Path:
        """The host workspace."""
        return self.root / "brainstem"

    @property
    def log(self) -> Path:
        """The log of the daemon and its workers."""
        return self.root / "rappd.log"

    @property
    def process_file(self) -> Path:
        """Held locked by the running daemon; says its process id and port."""
        return self.root / "rappd.pid"

    @property
    def socket(self) -> Path:
        """The control socket; a home with a very long name has it in the run-time folder."""
        return self._socket("rappd")

    @property
    def work_socket(self) -> Path:
        """The control socket of a command that works on this home while no daemon runs."""
        return self._socket("work")

    def _socket(self, name: str) -> Path:
        path = self.root / f"{name}.sock"
        if len(os.fsencode(path)) <= _SOCKET_PATH_LIMIT:
            return path
        run = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108 - 0600, name from the home's path
        return run / f"{name}-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]}.sock"

    def create(self) -> None:
        """Makes the folders, private to this account. Raises ``home_unusable``."""
        self.require_usable()
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:  # a full disk, or one that takes no folders
            raise RappdError(
                f"{self.root} cannot be made: {error.strerror}.",
                do="make room on its disk, or name another folder: `RAPP_HOME=FOLDER rappd start`",
                code="home_unusable",
            ) from error
        if self.root.stat().st_mode & 0o077 and self.root.stat().st_uid == os.getuid():
            self.root.chmod(0o700)  # made by hand, or by an older tool
        self.keys.mkdir(mode=0o700, exist_ok=True)
        if self.keys.stat().st_mode & 0o077:
            self.keys.chmod(0o700)

    def require_usable(self) -> None:
        """Raises ``home_unusable`` when this account cannot use the folder. Makes nothing."""
        if (obstacle := find_obstacle(self.root)) is not None:
            raise RappdError(f"{obstacle.what}.", do=obstacle.do, code="home_unusable")

    def lost_its_record(self) -> bool:
        """True where a daemon ran here, and neither the event log nor its anchors are left."""
        from rappd.store.connections import ANCHORS  # imports SQLite, which most commands do without

        left = (self.database, self.database.with_name(ANCHORS))
        return self.has_served() and not any(path.exists() for path in left)

    def has_served(self) -> bool:
        """True where a daemon ran here: it makes the database, then the key of its operators. Commands make no such key."""
        return (self.keys / OPERATOR_KEY).exists()

    def is_read_only(self) -> bool:
        """True for a home that is there on a disk that takes no writing: a mounted backup, say."""
        return self.root.is_dir() and bool(os.statvfs(self.root).f_flag & os.ST_RDONLY)

    def has_identity(self) -> bool:
        """False until the node's key is minted."""
        return self._identity.exists()

    def identity(self) -> IdentityKey:
        """The node's key, minted at the first start."""
        path = self._identity
        if path.exists():
            return IdentityKey.from_pem(path.read_bytes())
        key = IdentityKey.generate()
        write_atomically(path, key.to_pem())
        return key

    @property
    def _identity(self) -> Path:
        return self.keys / "identity.pem"

    def secret(self, name: str) -> bytes:
        """32 random bytes kept under ``keys/<name>``, made when first asked for."""
        path = self.keys / name
        if not path.exists():
            write_atomically(path, os.urandom(32))
        return path.read_bytes()

    def hold(self) -> LockedHome:
        """Claims this home for one process. Raises ``HomeTakenError`` when another has it."""
        handle = os.open(self.process_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(handle, 200, 0).decode(errors="replace").split()
            os.close(handle)
            raise HomeTakenError(*holder[:2]) from error
        return LockedHome(handle)


class ReadOnlyHome(Home):
    """A home that is looked at and stays as it is, perhaps on a read-only disk; what it lacks is made in memory."""

    def create(self) -> None:
        """Makes nothing."""

    def identity(self) -> IdentityKey:
        """The node's key; a passing one where none was minted yet."""
        return super().identity() if self.has_identity() else IdentityKey.generate()


class HomeTakenError(ConflictError):
    """Another process has the home: a daemon, or for a moment a command. ``is_worked_on``: it is a command."""

    code = "home_taken"

    def __init__(self, process: str = "?", where: str = "") -> None:
        self.is_worked_on = where == _WORKS
        super().__init__(f"rappd already runs on this home (process {process}).", do="rappd open")


class LockedHome:
    """The claim on a home; it ends with the process or with ``release``."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def announce(self, port: int) -> None:
        """Writes who holds the home and where it listens, for the command line; port 0 for a command."""
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{os.getpid()} {port or _WORKS}\n".encode(), 0)

    def release(self) -> None:
        """Gives the home free."""
        os.ftruncate(self._handle, 0)
        os.close(self._handle)


def machine_name(home: Home, configured: str = "") -> str:
    """The name screens show for this machine: the configured one, else the host's, made simple.

    A home elsewhere than the account's usual place adds four digits made from its path, so that two homes on
    one computer have two names. The path itself is nobody's business on the network.
    """
    host = socket.gethostname().split(".")[0]
    return _simple(configured) or _simple(host[:30] + _other_home(home.root)) or "machine"


def _other_home(root: Path) -> str:
    try:
        account = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # an account without an entry
        account = str(Path.home())
    path = os.path.realpath(root)
    if path == os.path.realpath(Path(account) / USUAL):
        return ""
    digits = hashlib.sha256(os.fsencode(path)).hexdigest()[:4]
    return f"-{digits}"


def _simple(name: str) -> str:
    simple = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name.lower())
    return simple.strip("-_")[:40]
