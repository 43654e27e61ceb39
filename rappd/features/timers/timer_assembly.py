"""All that works on a daemon's timers: the turns that they begin, delays of listeners, and talking about them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rappd.daemon.live_settings import LiveSettings
from rappd.dispatch.dispatcher import Dispatcher
from rappd.features.timers.firing import TimerFiring
from rappd.features.timers.handler_delays import Delays
from rappd.features.timers.model_call_limit import ModelCalls
from rappd.features.timers.setters import SetterRights
from rappd.features.timers.timer_agent_requests import TimerConversation
from rappd.features.timers.turn_timers import TurnTimers
from rappd.notices.notices import Notices
from rappd.sessions.schedule.timers import Timers
from rappd.tenants.listener_states import ListenerStates
from rappd.tenants.tenant import Tenant


class TimerParts:
    """Built once for a daemon. ``tenant`` gives the one of a workspace, opened if need be."""

    def __init__(
        self,
        timers: Timers,
        rights: SetterRights,
        dispatcher: Dispatcher,
        tenant: Callable[[str], Awaitable[Tenant]],
        states: ListenerStates,
        notices: Notices,
        settings: Callable[[], LiveSettings],
        has_model: Callable[[], bool],
        spoke: Callable[[str, str], None],
    ) -> None:
        """``spoke`` gets the user and the thread of each turn that is over."""

        def quiet() -> str:
            return settings().current.text("timers.quiet")

        def most_calls() -> int:
            return settings().current.number("timers.model_calls")

        self.timers = TurnTimers(timers, lambda: settings().current)
        self.conversation = TimerConversation(
            self.timers, quiet, lambda hours: settings().set("timers.quiet", hours)
        )
        calls = ModelCalls(timers, most_calls, has_model)
        firing = TimerFiring(
            timers, self.timers, rights, dispatcher, tenant, calls, notices, quiet, spoke=spoke
        )
        self.delays = Delays(timers, rights, dispatcher, tenant, states, firing.reserve)
