"""Eggs as screens show them: the content, the plan, and the signer of a file as this home knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envelopes.errors import ReportableError
from rappd.daemon.home import Home

if TYPE_CHECKING:
    from twins.eggs.parsed_egg import ParsedEgg
    from twins.installer.planning import Plan

_KEY_SHOWN = 16
_WHOSE = {"mine": " (yours)", "friend": " (a friend's)"}


def seen(opened: ParsedEgg, home: Home) -> dict[str, Any]:
    """Describes an egg and the trust of this home in its signer."""
    from twins.eggs.readers.inspect import inspect

    egg = inspect(opened)["egg"]
    return {"egg": {**egg, **signer_view(opened, home)}}


def planned(plan: Plan, home: Home) -> dict[str, Any]:
    """The plan for a screen, with what only the egg itself tells besides."""
    opened, body = plan.opened, plan.as_json()
    return {
        **body,
        "egg": {**body["egg"], "file": opened.file, "packed_on": host_of(opened)},
        "seal": {**body["seal"], "listed": opened.seal.listed, **signer_view(opened, home)},
    }


def signer_view(opened: ParsedEgg, home: Home) -> dict[str, str]:
    """The signer of an egg as this home knows it; ``signed`` is the sentence for every screen."""
    found = standing(home, opened.seal.signer, claimed=host_of(opened))
    return {
        "standing": found["standing"],
        "signer_name": found["name"],
        "whose": found["whose"],
        "signed": found["signed"],
    }


def host_of(opened: ParsedEgg) -> str:
    """The machine that packed an egg, as its signed manifest says."""
    host = opened.manifest.get("host")
    return " ".join(host.split())[:60] if isinstance(host, str) and opened.seal.signer else ""


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
