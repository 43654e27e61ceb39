"""The outbox under every failure on the way: taken once, answered once, none lost, in order."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)


class Storm(RuleBasedStateMachine):
    """A home, one far machine, real connections between them, and everything that goes wrong."""

    kit: SimpleNamespace

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.put: list[str] = []
        self.mortal: set[str] = set()

    def run(self, doing: Any) -> Any:
        return self.loop.run_until_complete(doing)

    @initialize()
    def begin(self) -> None:
        async def build() -> tuple[Any, Any]:
            far = self.kit.FarMachine(self.kit.peer_called("kitchen", "b"))
            await far.come()
            return far, self.kit.Home(far)

        self.far, self.home = self.run(build())

    @rule(kinds=st.lists(st.sampled_from(["now", "later", "fail"]), min_size=1, max_size=8))
    def put_some(self, kinds: list[str]) -> None:
        for does in kinds:
            self.put.append(self.run(self.home.put(self.kit.question(does), ttl=10 * 86_400)))

    @rule()
    def put_one_that_may_expire(self) -> None:
        id = self.run(self.home.put(self.kit.question(), ttl=1800))
        self.put.append(id)
        self.mortal.add(id)

    @rule(mood=st.sampled_from(["", "cut before", "cut after", 503, 429]))
    def the_far_machine_changes(self, mood: str | int) -> None:
        self.far.mood = mood

    @rule()
    def it_goes_or_comes_back(self) -> None:
        if self.far.is_here:
            self.run(self.far.leave())
        else:
            self.run(self.far.come())
            self.home.heard()

    @rule(held=st.booleans())
    def replies_are_held_back(self, held: bool) -> None:
        if self.far.hold is not None:
            self.far.hold.set()
        self.far.hold = asyncio.Event() if held else None

    @rule(seconds=st.sampled_from([0.0, 0.002, 0.01, 0.03]))
    def time_passes(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule(jump=st.sampled_from([-7200.0, -3.0, 3.0, 3600.0]))
    def the_clock_jumps(self, jump: float) -> None:
        self.home.clock.ahead += jump

    @rule()
    def a_sign_of_life(self) -> None:
        self.home.heard()

    @rule(crash=st.booleans())
    def the_daemon_restarts(self, crash: bool) -> None:
        self.run(self.home.restart(crash=crash))

    @rule(push=st.booleans(), times=st.integers(1, 3))
    def work_is_finished(self, push: bool, times: int) -> None:
        id = next((key[1] for key, reply in self.far.record.items() if reply is None), None)
        if id is None:
            return
        reply = self.far.finish(id)
        if push:
            peer = self.far.peer.fingerprint

            async def pushed() -> list[bool]:
                return await asyncio.gather(*(self.home.outbox.answered(peer, reply) for _ in range(times)))

            assert sum(self.run(pushed())) <= 1

    def teardown(self) -> None:
        if not hasattr(self, "home"):
            return
        try:
            self.run(self._calm())
            self._check()
        finally:
            self.run(self.home.close())
            self.run(self.far.leave())
            self.loop.close()

    async def _calm(self) -> None:
        if self.far.hold is not None:
            self.far.hold.set()
        self.far.hold, self.far.mood = None, ""
        if not self.far.is_here:
            await self.far.come()
        async with asyncio.timeout(100):
            while not set(self.home.rows.states()) <= {"done", "failed", "expired"}:
                for key in [key for key, reply in self.far.record.items() if reply is None]:
                    self.far.finish(key[1])
                self.home.heard()
                await asyncio.sleep(0.01)

    def _check(self) -> None:
        told = dict(self.home.told)
        states = {row.id: row.state for row in self.home.rows.rows.values()}
        assert list(states) == self.put, "none is lost"
        expired = {id for id, state in states.items() if state == "expired"}
        assert expired <= self.mortal
        assert len(self.far.accepted) == len(set(self.far.accepted)), "none is taken twice"
        assert expired | set(self.far.accepted) == set(self.put)
        lasting = [id for id in self.put if id not in self.mortal]
        assert [id for id in self.far.accepted if id not in self.mortal] == lasting, "in order"
        answers = [row.answer for row in self.home.rows.rows.values() if row.state != "expired"]
        assert all(answers)
        if not self.home.crashes:
            assert sorted(self.home.told) == sorted(states.items()), "each is told once"
        else:  # between the telling and the marking of an answer: told again, and the same
            assert {id for id, state in told.items() if state != "expired"} == set(self.put) - expired
            assert set(self.home.told) <= set(states.items())


def test_the_storm(kit: SimpleNamespace) -> None:
    class ThisStorm(Storm):
        pass

    ThisStorm.kit = kit
    run_state_machine_as_test(
        ThisStorm,
        settings=settings(
            max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
