"""Operations on LisPy cartridges that lie here, for the page, which runs them itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.providers.lazy_imports import load
from agents.storage.safe_fs import in_file_pool
from rappd.daemon.home import Home
from rappd.features.cartridges.cartridge_rows import CartridgeRow, CartridgeText, SignatureMade, Signed
from rappd.features.operation import OWNER, Text, operation
from twins.workspace.workspace import Workspace

if TYPE_CHECKING:
    from rappd.features.cartridges.found_cartridges import FoundCartridges

_NAME = 200


class CartridgeOperations:
    """Cartridges of the brainstem's workspace ``host`` and of the twins of ``home``."""

    def __init__(self, home: Home, host: Workspace) -> None:
        self._home, self._host = home, host

    @operation("cartridges.list", "GET", "/cartridges", right=OWNER, answers="cartridges")
    async def listing(self) -> list[CartridgeRow]:
        """The `.lispy.json` beside the agents of the brainstem and its twins; one that cannot be read says why in `problem`."""
        return await in_file_pool((await self._found()).listing)

    @operation("cartridges.read", "GET", "/cartridges/{file:.+}", right=OWNER, answers="cartridge")
    async def read(self, file: str, twin: str = "") -> CartridgeText:
        """The `text` of one, and who signed it; `twin` is the key of the twin whose it is."""
        return await in_file_pool((await self._found()).read, file, twin)

    @operation("cartridges.signer", "POST", "/cartridges/signer", right=OWNER)
    async def signer(self, sha256: Text, signature: Text, name: str = "") -> Signed:
        """The signer of a file, by its `sha256` and the text of the `signature` that came with it."""
        found = await self._found()
        return await in_file_pool(found.signer, sha256, signature, name=name[:_NAME] or "The file")

    @operation("cartridges.sign", "POST", "/cartridges/signature", right=OWNER)
    async def sign(self, content: bytes, name: Text) -> SignatureMade:
        """Signs a cartridge (the body is the file, `?name=` what it is called) with this machine's key.

        `signature` is the text of the file that belongs beside it.
        """
        return await in_file_pool((await self._found()).sign, content, name=name[:_NAME])

    async def _found(self) -> FoundCartridges:
        """The cartridges of this home; the imports are heavy."""
        found: type[FoundCartridges] = (
            await load("rappd.features.cartridges.found_cartridges")
        ).FoundCartridges
        return found(self._home, self._host)
