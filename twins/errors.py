"""Errors of this layer: a workspace, a twin, an egg."""

from __future__ import annotations

from typing import Any, ClassVar

from envelopes.errors import Refusal, ReportableError


class TwinError(ReportableError):
    """Root of this package's errors."""

    code = "twin"
    refusals: ClassVar = {
        "ambiguous": Refusal(400, 2, "A name that fits several files of a workspace."),
        "bad_sealing_key": Refusal(400, 5, "Text that is no key to seal eggs with, or to open them."),
        "changed_since": Refusal(
            409, 9, "Files changed after the hatching that is to be rolled back; nothing was touched."
        ),
        "no_such_checkpoint": Refusal(404, 4, "A twin has no checkpoint of that name, or none at all."),
        "no_such_hatching": Refusal(404, 4, "No receipt of that name."),
        "not_for_this_machine": Refusal(
            403, 5, "A sealed egg that the sealing key at hand does not open; nothing was written."
        ),
        "not_writable": Refusal(500, 1, "The disk refused to read or write; everything is as it was."),
        "session_too_large": Refusal(
            413,
            5,
            "A session with more events, or more text, than a session egg may hold; nothing was written.",
        ),
        "unconfirmed": Refusal(409, 6, "A verb that destroys, without the yes it needs."),
        "unknown_egg": Refusal(400, 5, "A cartridge of no known kind; never guessed at (RAPP v1 §18.10.2)."),
    }


class NoSuchFileError(TwinError):
    """A file that the workspace does not hold."""

    code = "no_such_file"
    status = 404
    exit_code = 4


class BadFileError(TwinError):
    """A file that cannot be taken in: wrong kind, wrong name, damaged, or not what it claims."""

    code = "bad_file"
    status = 400
    exit_code = 5

    def __init__(
        self, message: str, *, do: str = "", file: str = "", line: int | None = None, reason: str = ""
    ) -> None:
        """``file``, ``line`` and ``reason`` say once more, for editors, which fault of code the message names."""
        super().__init__(message, do=do)
        self.file = file
        self.line = line
        self.reason = reason

    def as_json(self) -> dict[str, Any]:
        fault = {"file": self.file, "line": self.line, "reason": self.reason} if self.reason else {}
        return {**super().as_json(), **fault}


class BadRappidError(TwinError):
    """Text that is not a rappid in any form in circulation."""

    code = "bad_rappid"
    status = 400
    exit_code = 5


class NoSuchTwinError(TwinError):
    """No twin of that name or rappid lives in the state that the verb needs."""

    code = "no_such_twin"
    status = 404
    exit_code = 4


class TwinConflictError(TwinError):
    """The state on disk does not allow it: the place is taken, the twin is in another state."""

    code = "twin_conflict"
    status = 409
    exit_code = 9


class BadEggError(TwinError):
    """An egg that is damaged or does not hold what it claims; nothing was written."""

    code = "bad_egg"
    status = 400
    exit_code = 5


class HostileEggError(BadEggError):
    """An egg made to do harm: names outside its folder, links, bombs. Refused whole, nothing was written."""

    code = "hostile_egg"


class SecretFoundError(TwinError):
    """A likely secret lies in what was to be packed; nothing was packed."""

    code = "secret_found"
    status = 409
    exit_code = 5


class BadCartridgeError(TwinError):
    """A cartridge that cannot be loaded: wrong shape, or an image that no machine could have written."""

    code = "bad_cartridge"
    status = 400
    exit_code = 5


class BadFilterError(TwinError):
    """A filter that does not say clearly which twins are meant; nothing was touched."""

    code = "bad_filter"
    status = 400
    exit_code = 2
