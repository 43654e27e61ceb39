"""Asking one machine of the fleet how it is."""

from __future__ import annotations

from typing import Any

from neighborhoods.snapshot.member_failures import as_failure
from neighborhoods.snapshot.roster import Member
from rappd.features.snapshots.members import NeighborhoodMembers, no_way

_LONGEST_DETAIL = 500
_NOT_RUNNING = 3
"""The exit code of ``rappd status`` where no daemon runs."""


class MemberStatus:
    """Asks one member how it is."""

    def __init__(self, here: NeighborhoodMembers, member: Member) -> None:
        self._here = here
        self._member = member

    def late(self, told: str) -> dict[str, Any]:
        """The row of a member that did not answer in time."""
        name = self._member.name
        return {**status_row(name, name, mine=self._member.is_mine, reachable=False), "detail": told}

    async def row(self) -> dict[str, Any]:
        """The row of one that did."""
        member, transport = self._member, self._here.transport(self._member)
        is_here = member.presence == "here"
        row = status_row(member.name, member.name, mine=member.is_mine, reachable=is_here)
        if transport is None:
            return {**row, "health": "awake" if is_here else "", "detail": "" if is_here else no_way(member)}
        try:
            probe = await transport.probe()
            row |= {
                "reachable": probe.reachable,
                "detail": probe.detail,
                "rappd_version": probe.rappd_version,
                "free_bytes": probe.free_bytes,
                "took_ms": probe.took_ms,
            }
            if probe.reachable:
                twins = (await transport.list()).twins
                row["twins"] = sum(not twin.failure for twin in twins)
                row["detail"] = (
                    " ".join(twin.failure for twin in twins if twin.failure)[:_LONGEST_DETAIL]
                    or row["detail"]
                )
                row |= await self._health(has_rappd=bool(probe.rappd_version))
        except Exception as error:  # noqa: BLE001 - logged there; the other members are asked all the same
            row |= {"detail": as_failure(member.name, error).with_advice()}
        finally:
            await transport.aclose()
        return row

    async def _health(self, *, has_rappd: bool) -> dict[str, Any]:
        if self._member.way == "rappd":
            return {"health": "awake"}  # it answered itself
        far = self._here.far_rappd(self._member)
        if far is None or not has_rappd:
            return {"health": "no rappd"}
        answer = await far.run(("status", "--json"), "its rappd was not asked")
        if answer.code == _NOT_RUNNING:
            return {"health": "stopped"}
        said = answer.json().get("status")
        problems = said.get("problems") if isinstance(said, dict) else None
        if not isinstance(problems, list):
            raise answer.refusal()
        told = [str(one.get("what", ""))[:200] for one in problems[:8] if isinstance(one, dict)]
        return {"health": "not ready" if told else "awake", "problems": told}


def status_row(peer: str, name: str, *, mine: bool, reachable: bool) -> dict[str, Any]:
    """A row with nothing known yet but that."""
    return {
        "peer": peer,
        "name": name,
        "mine": mine,
        "reachable": reachable,
        "health": "",
        "problems": [],
        "detail": "",
        "rappd_version": "",
        "free_bytes": -1,
        "twins": None,
        "took_ms": 0.0,
    }
