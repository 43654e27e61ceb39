"""The signer of a file and this home's trust in it."""

from __future__ import annotations

from rappd.daemon.home import Home


def standing(home: Home, fingerprint: str) -> dict[str, str]:
    """``standing`` of a key (unsigned, self, trusted, unknown) and the ``name`` that it goes by here, "" for none."""
    from twins.installer.signers import Signers

    if not fingerprint:
        return {"standing": "unsigned", "name": ""}
    if (home.keys / "identity.pem").exists() and fingerprint == home.identity().fingerprint:
        return {"standing": "self", "name": "this machine"}
    name = Signers(home.signers).name_of(fingerprint) if home.root.is_dir() else ""
    return {"standing": "trusted" if name else "unknown", "name": name}
