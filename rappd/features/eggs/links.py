"""Links by which a browser fetches an egg that is dragged out of the page: it asks for them without headers."""

from __future__ import annotations

import hmac
import secrets
import time
from pathlib import Path
from urllib.parse import quote

from rappd.errors import NotFoundError

SECONDS = 3600
_KEY = secrets.token_bytes(32)
"""Links end with the process that gave them."""


def link_to(path: Path, public: str) -> str:
    """The address of a packed egg, for the page whose session has the key ``public``: its signature has to come in."""
    place, until = f"{path.parent.name}/{path.name}", str(int(time.time()) + SECONDS)
    return f"/eggs/out/{until}-{_ticket(place, until, public)}/{quote(place)}"


def check_ticket(ticket: str, place: str, public: str) -> None:
    """Raises ``NotFoundError`` unless the ticket of a link was given for this egg, to this key, within the hour."""
    until, _, mac = ticket.partition("-")
    if (
        not hmac.compare_digest(mac.encode(), _ticket(place, until, public).encode())
        or int(until) < time.time()
    ):
        raise NotFoundError("This link is too old.", do="Pack it again.")


def _ticket(place: str, until: str, public: str) -> str:
    """Ties the path of an egg to the key of the session that packed it: another key signs nothing for it."""
    return hmac.new(_KEY, f"{until} {public} {place}".encode("utf-8", "replace"), "sha256").hexdigest()
