"""XSDs of the listeners of one workspace: ``schemas/NAME/v1.xsd``, and ``v2.xsd`` beside it for a payload that changed.

They are written for others to read, from forms alone; nothing here goes by what these files say, but for the number of a
version, which its form's digest tells.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path

from agents.storage.atomic_write import write_atomically
from envelopes.payloads.form import PayloadForm
from envelopes.payloads.schemas import xsd

log = logging.getLogger(__name__)

_VERSION = re.compile(r"v([1-9][0-9]{0,5})\.xsd")
_DIGEST = re.compile(rb"<!-- form ([0-9a-f]{64}) -->")
_HEAD = 400
_MOST_VERSIONS = 1_000


class ListenerSchemas:
    """The schemas of one workspace. Blocks on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._versions: dict[str, tuple[str, int]] = {}
        self._newest: dict[str, int] = {}

    def version(self, form: PayloadForm) -> int:
        """The version of a listener's payload, as ``keep`` found it; 1 for one that was not kept."""
        digest, version = self._versions.get(form.name, ("", 1))
        return version if digest == form.digest() else 1

    def newest(self, form: PayloadForm) -> int:
        """The highest version that a listener of that name has a schema of: the namespaces up to it are its own."""
        return self._newest.get(form.name, 1)

    def keep(self, forms: Iterable[PayloadForm]) -> None:
        """Writes the schema of each listener that has none yet, or whose texts changed."""
        for form in forms:
            try:
                self._versions[form.name] = form.digest(), self._kept(form)
            except OSError as error:
                log.warning("the schema of %s cannot be written: %s", form.name, error)

    def _kept(self, form: PayloadForm) -> int:
        folder = self._folder / form.name
        known = self._known(folder)
        digest = form.digest()
        version = next((number for number, found in known.items() if found == digest), 0)
        if not version:
            version = max(known, default=0) + 1
            if version > _MOST_VERSIONS:
                raise OSError(f"it has {_MOST_VERSIONS} versions")
        text = xsd(form, version).encode()
        self._newest[form.name] = max([version, *known])
        target = folder / f"v{version}.xsd"
        if not target.is_file() or target.read_bytes() != text:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(target, text)
            log.info("%s: schema v%d written", form.name, version)
        return version

    @staticmethod
    def _known(folder: Path) -> dict[int, str]:
        """The versions that are there, the newest first, with the digests of their forms."""
        found: dict[int, str] = {}
        for path in folder.iterdir() if folder.is_dir() else ():
            if match := _VERSION.fullmatch(path.name):
                with path.open("rb") as file:
                    digest = _DIGEST.search(file.read(_HEAD))
                found[int(match[1])] = digest[1].decode() if digest else ""
        return dict(sorted(found.items(), reverse=True))
