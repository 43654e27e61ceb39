"""The signer of a file as this home knows it, and the one sentence that screens show of it."""

from __future__ import annotations

from envelopes.errors import ReportableError
from rappd.daemon.home import Home

_KEY_SHOWN = 16


def standing(home: Home, fingerprint: str, *, claimed: str = "") -> dict[str, str]:
    """The trust of this home in a key, for screens and ``--json``.

    ``standing`` is unsigned, self, trusted or unknown; ``name`` what the key's machine is called here, "" for
    none; ``whose`` mine or friend for a paired machine; ``signed`` the sentence. ``claimed``: what the signed
    file calls its machine, which proves nothing.
    """
    from twins.trust.signers import Signers

    whose = ""
    if not fingerprint:
        kind, name = "unsigned", ""
    elif home.has_identity() and fingerprint == home.identity().fingerprint:
        kind, name = "self", "this machine"
    else:
        trusted = Signers(home.signers).name_of(fingerprint) if home.root.is_dir() else ""
        name, whose = paired_machine(home, fingerprint)
        kind, name = "trusted" if trusted else "unknown", name or trusted
    return {
        "standing": kind,
        "name": name,
        "whose": whose,
        "signed": signed_by(fingerprint, name=name, whose=whose, claimed=claimed),
    }


def signed_by(fingerprint: str, *, name: str, whose: str, claimed: str) -> str:
    """ "signed by vm (yours)"; of a key without a name here its beginning, then what it calls itself in quotes."""
    if not fingerprint:
        return "not signed"
    if name:
        return f"signed by {name}{_WHOSE.get(whose, '')}"
    quoted = claimed.replace('"', "'")  # it ends no quotes
    own_words = f' ("{quoted}")' if quoted else ""
    return f"signed by key {fingerprint[:_KEY_SHOWN]}{own_words}, not paired"


def paired_machine(home: Home, fingerprint: str) -> tuple[str, str]:
    """(name, whose) of the paired machine with that key; "" for none, and where the database cannot be read."""
    from rappd.store.reader import Reader

    if not home.database.exists():
        return "", ""
    try:
        with Reader(home.database) as reader:
            rows = reader.rows("SELECT name, whose FROM peers WHERE fingerprint = ?", (fingerprint,))
    except ReportableError:
        return "", ""
    return (str(rows[0][0]), str(rows[0][1])) if rows else ("", "")


_WHOSE = {"mine": " (yours)", "friend": " (a friend's)"}
