"""Files of the account that agents do not see: keys, tokens, profiles, histories of other programs.

Two rules, since no list of programs is complete: names that are known to hold secrets, and what its owner
closed to all other accounts (mode 0600, 0700), as programs do with tokens. ``agents.may_read`` opens what an
agent needs.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence

from agents.runtimes.python.sandbox.file_access import is_within

_KEYS = ".ssh .gnupg .pki .password-store .vault-token .ollama .android .1password .bitwarden* .age .sops"
_CLOUDS = (
    ".aws .azure .kube .docker .oci .bluemix .ibmcloud .terraform.d .terraformrc .boto .s3cfg .databrickscfg"
)
_CLOUDS += (
    " .snowsql .snowflake .dbt .fly .railway .netlify .wrangler .heroku .minikube .helm .pulumi .chef .kaggle"
)
_NETWORK = ".netrc _netrc .git-credentials .pgpass .my.cnf .mylogin.cnf .msmtprc .mbsyncrc .fetchmailrc"
_NETWORK += " .offlineimaprc .mutt* .davfs2 .smbcredentials .lftp .ncftp .irssi .weechat .purple"
_PACKAGES = ".npmrc .yarnrc.yml .pypirc .gem/credentials .cargo/credentials* .m2/settings*.xml .m2/settings-security.xml"
_PACKAGES += " .gradle/gradle.properties .composer/auth.json .bundle/config "
_HISTORIES = ".*_history .*history .histfile .lesshst .viminfo .bash_sessions .zsh_sessions .recently-used*"
_SCREENS = ".Xauthority .ICEauthority .vnc .xsession-errors*"
_BROWSERS = ".mozilla .thunderbird .librewolf .waterfox .tor-browser .zen .var/app snap"
_ASSISTANTS = (
    ".claude .claude.json .codex .gemini .cursor* .copilot .continue .aider* .vscode-server .windsurf .openai"
)
_CONFIG = "gh glab* hub git/credentials gcloud rclone op 1Password Bitwarden* keepassxc KeePass* sops age doctl hcloud"
_CONFIG += " google-chrome* chromium* BraveSoftware microsoft-edge* vivaldi* opera* Yandex* mozilla Code Codium VSCodium"
_CONFIG += " Cursor Windsurf discord* Slack Signal* Element* Telegram* evolution goa-1.0 kwallet* libaccounts* github-copilot"
_CONFIG += " containers helm pulumi stripe netlify configstore heroku flyctl sourcegraph* twine pypoetry/auth.toml uv/credentials*"
_SHARE = "keyrings kwalletd TelegramDesktop Bitwarden* evolution gnome-online-accounts jupyter/runtime uv/credentials*"
_SHARE += " pypoetry keybase Steam/config recently-used.xbel fish"
_CACHE = "google-chrome* chromium* mozilla BraveSoftware microsoft-edge*"
_CACHE += " thunderbird evolution keyring-* keybase"

NAMED = tuple(
    " ".join((_KEYS, _CLOUDS, _NETWORK, _PACKAGES, _HISTORIES, _SCREENS, _BROWSERS, _ASSISTANTS)).split()
    + [f".config/{name}" for name in _CONFIG.split()]
    + [f".local/share/{name}" for name in _SHARE.split()]
    + [f".cache/{name}" for name in _CACHE.split()]
)
"""Patterns of names in a home folder."""

_HARMLESS = (
    ".bash_logout .bash_profile .bashrc .zshrc .zprofile .zshenv .profile .inputrc .vimrc .nanorc .tmux.conf"
)
_HARMLESS += (
    " .gitconfig .gitignore .hgrc .editorconfig .cache .config .local .local/share .local/state .local/lib"
)
_HARMLESS += (
    " .local/bin .fonts .fontconfig .icons .themes .matplotlib .ipython .jupyter .keras .nltk_data .torch"
)
_HARMLESS += (
    " .cargo .rustup .npm .nvm .pyenv .conda .condarc .gem .m2 .gradle .nuget .bundle .composer .java .sdkman"
)
_HARMLESS += " .config/matplotlib .config/fontconfig .config/pip .config/uv .config/git .config/pypoetry .config/user-dirs.dirs"
_HARMLESS += (
    " .config/user-dirs.locale .config/yfinance .config/pandas .config/conda .config/nltk .config/streamlit"
)
HARMLESS = frozenset(_HARMLESS.split())
"""Names that stay readable where an account closes all its files to others (``umask 077``)."""

_CONTAINERS = frozenset({".config", ".local", ".local/share", ".local/state", ".cache"})
"""Folders of many programs."""

SYSTEM = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/letsencrypt"),
    *("/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/krb5.keytab", "/etc/kubernetes"),
    *("/run/secrets", "/etc/ssh/ssh_host_*_key", "/etc/openvpn", "/etc/docker/key.json", "/etc/rancher"),
)
"""Secrets of the machine, where this account can read them."""

SETTING = "agents.may_read"
EVERYTHING = "*"
_KNOWN = re.compile("|".join(fnmatch.translate(name) for name in NAMED))
# Below folders that are not walked through.
_EXACT = (".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".nuget/NuGet/NuGet.Config")
_CACHE_FOLDER = ".cache"  # all of it is closed to others: only names count
_REFUSALS = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENXIO, errno.ENOTDIR, errno.EROFS)
_SECONDS = 10.0
_MOST_ENTRIES = 1000
_hidden_here: tuple[str, ...] = ()


class PrivatePaths:
    """The private paths of this machine's homes, as real paths. Looked up again when asked 10 seconds later.

    ``may_read``: paths that stay readable, absolute or below a home; ``*`` for all. ``system``: with those of
    ``SYSTEM``.
    """

    def __init__(self, homes: Sequence[str], may_read: Sequence[str], *, system: bool) -> None:
        self._homes = [*homes, *(other_homes() if os.geteuid() == 0 else ())]
        self._may_read = tuple(may_read)
        self._system = system
        self._looked = -_SECONDS
        self.hidden: tuple[str, ...] = ()
        self.shown: tuple[str, ...] = ()

    def refresh(self) -> None:
        """Look again, if the last time is long enough ago."""
        if time.monotonic() - self._looked < _SECONDS:
            return
        now = time.monotonic()
        if EVERYTHING in self._may_read:
            return
        allowed = [path for one in self._may_read for path in self._places(one)]
        found = {path for home in self._homes for path in private_in_home(home)}
        found |= set(_private_in_system() if self._system else ())
        around = [*self._homes, "/"]
        self.hidden = tuple(
            path
            for path in sorted(found)
            if not any(is_within(path, one) for one in allowed)
            and not any(is_within(home, path) for home in around)
        )
        self.shown = tuple(one for one in allowed if any(is_within(one, path) for path in self.hidden))
        self._looked = now  # not before: a look that failed hid nothing, and is made again at once

    def named(self, paths: Iterable[str]) -> list[str]:
        """The ``paths`` that are hidden, or lie in what is hidden."""
        self.refresh()
        return [
            text
            for text in paths
            if any(is_within(place, one) for place in self._places(text) for one in self.hidden)
        ]

    def _places(self, text: str) -> Iterator[str]:
        name = text.strip().removeprefix("~/").rstrip("/")
        if name:
            yield from {os.path.realpath(os.path.join(home, name)) for home in self._homes}


def other_homes() -> list[str]:
    """Home folders of people, which root could read; from the account file alone, not from a directory service."""
    found = ["/root"]
    with contextlib.suppress(OSError), open("/etc/passwd", encoding="utf-8", errors="replace") as lines:
        accounts = [line.split(":") for line in lines]
        found += [one[5] for one in accounts if len(one) > 5 and one[2].isdigit() and int(one[2]) >= 1000]
    with contextlib.suppress(OSError), os.scandir("/home") as entries:
        found += [entry.path for entry in entries]
    resolved = {os.path.realpath(path) for path in found if path.count("/") and path != "/"}
    return [path for path in sorted(resolved) if path != "/" and os.path.isdir(path)]


def private_in_home(home: str) -> Iterator[str]:
    """The private paths in ``home``, as real paths."""
    for name in _EXACT:
        if os.path.lexists(path := f"{home}/{name}"):
            yield os.path.realpath(path)
    ahead = [""]
    while ahead:
        folder = ahead.pop()
        of_many = folder in ("", *_CONTAINERS)
        for entry in _entries(f"{home}/{folder}"):
            name = f"{folder}/{entry.name}" if folder else entry.name
            if _KNOWN.match(name):
                yield os.path.realpath(entry.path)
            elif not name.startswith("."):
                continue  # documents and pictures
            elif folder != _CACHE_FOLDER and name not in HARMLESS and _is_closed(entry, folder=of_many):
                yield os.path.realpath(entry.path)
            elif of_many and folder != _CACHE_FOLDER and entry.is_dir(follow_symlinks=False):
                ahead.append(name)


def remember(hidden: Sequence[str]) -> None:
    """Keep what is hidden from this worker, for ``explain``."""
    global _hidden_here
    _hidden_here = tuple(hidden)


def explain(problem: BaseException) -> str:
    """A sentence for the reader of a refused private path; "" for any other problem."""
    if not isinstance(problem, OSError) or problem.errno not in _REFUSALS:
        return ""
    name = problem.filename
    if not isinstance(name, str):
        return ""
    path = os.path.abspath(name)
    for hidden in _hidden_here:
        if is_within(path, hidden) or is_within(os.path.realpath(path), hidden):
            return f" ({hidden} is hidden from agents; the setting {SETTING} opens it)"
    return ""


def _private_in_system() -> Iterator[str]:
    for pattern in SYSTEM:
        for path in glob.glob(pattern):
            if os.access(path, os.R_OK):
                yield os.path.realpath(path)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
            yield entry


def _is_closed(entry: os.DirEntry[str], *, folder: bool) -> bool:
    """True for what no other account may open; ``folder``: of folders, too."""
    try:
        mode = entry.stat().st_mode
    except OSError:
        return False
    return not mode & (stat.S_IRWXG | stat.S_IRWXO) and (folder or not stat.S_ISDIR(mode))
