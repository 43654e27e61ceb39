"""JSON views of eggs: a plan, an egg's content, its signer."""

from __future__ import annotations

from typing import Any

from rappd.daemon.home import Home
from rappd.features.eggs.signer_trust import standing
from twins.eggs.parsed_egg import ParsedEgg
from twins.installer.planning import Plan


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
