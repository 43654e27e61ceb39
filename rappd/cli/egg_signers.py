"""``rappd egg signers``: whose eggs run here without being read first."""

from __future__ import annotations

import click

from rappd.cli.console import dim, print_json, print_out, status_mark
from rappd.cli.egg_options import JSON, verbs_here
from rappd.cli.tables import table


@click.command()
@click.option("--trust", "fingerprint", metavar="FINGERPRINT", help="Trust this key.")
@click.option("--name", default="", help="What to call it.")
@click.option("--revoke", metavar="FINGERPRINT", help="Do not trust it any more.")
@JSON
def signers(fingerprint: str | None, name: str, revoke: str | None, as_json: bool) -> None:
    """Manage the signers whose eggs run here without being read first."""
    verbs = verbs_here()
    if fingerprint:
        found = verbs.trust_signer(fingerprint, name)
    elif revoke:
        found = verbs.revoke_signer(revoke)
    else:
        found = verbs.list_signers()
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
        print_out(dim(f"This machine: {found['own']}"))
