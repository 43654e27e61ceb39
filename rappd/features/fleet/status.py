"""Asking one machine of the fleet how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

from neighborhoods.snapshot.member_transport import as_failure

if TYPE_CHECKING:
    from neighborhoods.snapshot.roster import Member
    from rappd.features.snapshots.members import NeighborhoodMembers

_LONGEST_DETAIL = 500
_NOT_RUNNING = 3
"""The exit code of ``rappd status`` where no daemon runs."""


class LastSnapshot(TypedDict):
    """The newest snapshot that a machine can be restored from."""

    name: str
    taken_at: str
    path: str


class FleetRow(TypedDict):
    """A machine of the fleet; ``free_bytes`` is -1 and ``twins`` None where it did not say."""

    peer: str
    name: str
    mine: bool
    reachable: bool
    health: str
    problems: list[str]
    detail: str
    rappd_version: str
    free_bytes: int
    twins: int | None
    took_ms: float
    last_snapshot: NotRequired[LastSnapshot | None]


class MemberStatus:
    """Asks one member how it is."""

    def __init__(self, here: NeighborhoodMembers, member: Member) -> None:
        self._here = here
        self._member = member

    def late(self, problem: str) -> FleetRow:
        """The row of a member that did not answer in time."""
        name = self._member.name
        row = status_row(name, name, mine=self._member.is_mine, reachable=False)
        row["detail"] = problem
        return row

    async def row(self) -> FleetRow:
        """The row of one that did."""
        from rappd.features.snapshots.members import no_way

        member, transport = self._member, self._here.transport(self._member)
        is_here = member.presence == "here"
        row = status_row(member.name, member.name, mine=member.is_mine, reachable=is_here)
        if transport is None:
            row["health"], row["detail"] = ("awake", "") if is_here else ("", no_way(member))
            return row
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
                row["health"], row["problems"] = await self._health(has_rappd=bool(probe.rappd_version))
        except Exception as error:  # noqa: BLE001 - logged there; the other members are asked all the same
            row["detail"] = as_failure(member.name, error).with_advice()
        finally:
            await transport.aclose()
        return row

    async def _health(self, *, has_rappd: bool) -> tuple[str, list[str]]:
        if self._member.way == "rappd":
            return "awake", []  # it answered itself
        far = self._here.far_rappd(self._member)
        if far is None or not has_rappd:
            return "no rappd", []
        answer = await far.run(("status", "--json"), "its rappd was not asked")
        if answer.code == _NOT_RUNNING:
            return "stopped", []
        status = answer.json().get("status")
        problems = status.get("problems") if isinstance(status, dict) else None
        if not isinstance(problems, list):
            raise answer.refusal()
        problem_texts = [str(one.get("what", ""))[:200] for one in problems[:8] if isinstance(one, dict)]
        return ("not ready" if problem_texts else "awake"), problem_texts


def status_row(peer: str, name: str, *, mine: bool, reachable: bool) -> FleetRow:
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
