"""``rappd egg signers``: whose eggs run here without being read first."""

from __future__ import annotations

import re

import click

from rappd.cli.console import dim, print_json, print_out, status_mark
from rappd.cli.home_client import HomeClient
from rappd.cli.tables import table
from rappd.daemon.home import Home
from rappd.features.eggs.cli_options import JSON

_KEY = re.compile(r"[0-9a-f]{64}")


@click.command()
@click.option("--trust", "trusted", metavar="PEER|KEY", help="Trust a paired machine's key, or this one.")
@click.option("--name", default="", help="What to call it.")
@click.option("--revoke", "revoked", metavar="NAME|KEY", help="Do not trust it any more.")
@JSON
def signers(trusted: str | None, name: str, revoked: str | None, as_json: bool) -> None:
    """List, add or remove the senders whose eggs run their code here without asking you.

    PEER is a paired machine, as `rappd peers list` names it; KEY the 64 digits of any machine's key.
    """
    home = HomeClient(Home.here(), reads=not (trusted or revoked))
    if trusted:
        found = home.do("eggs.trust", fingerprint=_key_of(home, trusted), name=name)
    elif revoked:
        names = {one["name"]: one["fingerprint"] for one in home.do("eggs.signers")["signers"]}
        found = home.do("eggs.revoke", fingerprint=names.get(revoked) or _key_of(home, revoked))
    else:
        found = home.do("eggs.signers")
        if not Home.here().has_identity():
            found["own"] = None
    if as_json:
        print_json(found)
    elif "message" in found:
        print_out(f"{status_mark('good')} {found['message']}")
    else:
        rows = [[row["name"], row["fingerprint"], row["since"][:10]] for row in found["signers"]]
        if rows:
            table(["NAME", "FINGERPRINT", "SINCE"], rows, whole=(1,))
        else:
            print_out("Nobody yet; this machine's own eggs are trusted.")
        print_out(dim(f"This machine: {found['own'] or 'no key yet, rappd start makes one'}"))


def _key_of(home: HomeClient, selector: str) -> str:
    """The key that was typed, or the one of the paired machine that was named. Raises ``NoSuchPeerError``."""
    if _KEY.fullmatch(selector):
        return selector
    return str(home.do("peers.show", peer=selector)["peer"]["fingerprint"])
