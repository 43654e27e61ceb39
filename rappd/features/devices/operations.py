"""The owner's operations on phones: show a code, compare digits, list, change and remove devices, send them eggs."""

from __future__ import annotations

from rappd.errors import UsageProblemError
from rappd.features.eggs.uploaded_eggs import whole_path
from rappd.features.operation import OWNER, Text, operation
from rappd.tether.devices import ConnectedDevice, DeviceRow, EggOffer, WindowState, checked_kind, rights_of
from rappd.tether.service import TetherService


class DeviceOperations:
    """Registered phones, and the window in which one is paired. ``device``: a name, or the beginning of an id."""

    def __init__(self, tether: TetherService) -> None:
        self._tether = tether

    @operation("devices.list", "GET", "/devices", right=OWNER, answers="devices")
    async def listing(self) -> list[ConnectedDevice]:
        """Lists registered phones, and whether they are connected now."""
        return self._tether.listing()

    @operation("devices.window", "GET", "/devices/window", right=OWNER)
    async def window(self) -> WindowState:
        """The code that is shown now, the digits to compare, or how it ended."""
        return self._tether.window_state()

    @operation("devices.open_window", "POST", "/devices/window", right=OWNER)
    async def open_window(
        self,
        name: str = "",
        ttl: float | None = None,
        scope: str = "",
        user: str = "",
        session: bool = False,
    ) -> WindowState:
        """Shows a new code: perhaps `name`, `ttl` in seconds, `scope` (`talk` or `listen`), `user`, and `session`: it joins that of the phones."""
        return await self._tether.open_window(
            name=name, seconds=ttl, scope=scope or "talk", user=user, session=session
        )

    @operation("devices.qr", "GET", "/devices/window/qr", right=OWNER, answers="svg")
    async def qr_code(self) -> str:
        """The QR code that is shown now, as the text of an SVG picture: `{svg}`."""
        return self._tether.qr_code()

    @operation("devices.answer", "POST", "/devices/window/answer", right=OWNER)
    async def answer(self, id: Text, same: bool, kind: str = "guest") -> WindowState:
        """Says whether both screens show the same digits: the window's `id`, `same`, and whose phone it is: `mine`, or a `guest`'s."""
        return self._tether.answer(id, same, checked_kind(kind))

    @operation("devices.close_window", "DELETE", "/devices/window", right=OWNER)
    async def close_window(self) -> WindowState:
        """Takes the code back."""
        return await self._tether.close_window()

    @operation("devices.show", "GET", "/devices/{device}", right=OWNER)
    async def show(self, device: str) -> ConnectedDevice:
        """Shows a phone."""
        return self._tether.shown(self._tether.devices.find(device))

    @operation("devices.change", "POST", "/devices/{device}", right=OWNER)
    async def change(
        self,
        device: str,
        name: str = "",
        scope: str = "",
        workflows: bool | None = None,
        eggs: bool | None = None,
        notices: bool | None = None,
        user: str | None = None,
        approve: bool | None = None,
        kind: str = "",
        session: bool | None = None,
    ) -> ConnectedDevice:
        """Changes a phone's `name`, `scope`, `workflows`, `eggs`, `notices`, `approve`, `user`, `session`; what is left out stays.

        `kind` is `mine` or `guest`, and gives it the rights of one.
        """
        found = self._tether.devices.find(device)
        rights = {"workflows": workflows, "eggs": eggs, "notices": notices}
        if (
            not (name or scope or kind)
            and user is None
            and session is None
            and all(one is None for one in (*rights.values(), approve))
        ):
            raise UsageProblemError(
                "There is nothing to change.",
                do="Send name, kind, scope, workflows, eggs, notices, approve, user or session.",
            )
        whose = checked_kind(kind) if kind else None
        if whose == "mine" and user is None:
            user = ""  # the owner's
        if whose is not None and approve is None:
            approve = whose == "mine" and found.tls
        if name:
            self._tether.devices.rename(found, name)
        had = rights_of(whose) if whose else {right: getattr(found, right) for right in rights}
        kept = {right: had[right] if one is None else one for right, one in rights.items()}
        if approve is False:  # a guest's phone has it at no moment
            self._tether.let_approve(found, approve)
        self._tether.allow(found, scope or found.scope, **kept, user=user, kind=whose, invited=session)
        if approve:
            self._tether.let_approve(found, approve)
        return self._tether.shown(found)

    @operation("devices.send_egg", "POST", "/devices/{device}/eggs", right=OWNER, answers="sent")
    async def send_egg(self, device: str, path: Text) -> EggOffer:
        """Puts the egg at `path` on this machine there for a phone, until it fetched it or the daemon ends."""
        found = self._tether.devices.find(device)
        return await self._tether.offer_egg(found, whole_path(path))

    @operation("devices.revoke", "DELETE", "/devices/{device}", right=OWNER, answers="removed")
    async def revoke(self, device: str) -> DeviceRow:
        """Removes a phone; its connection ends at once."""
        found = self._tether.devices.find(device)
        self._tether.revoke(found)
        return found.shown()
