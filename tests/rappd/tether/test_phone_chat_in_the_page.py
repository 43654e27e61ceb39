"""The phone's page as a full chat: the page's own components over the phone's connection, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fixtures.chromium import needs_chromium
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, expect

from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_browser import PhonePage, chromium

pytestmark = [pytest.mark.browser, needs_chromium]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def thinking(make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel) -> RunningDaemon:
    """A daemon with a model that says what the test wants."""
    model = {"OPENAI_BASE_URL": fake_model.url, "OPENAI_MODEL": "small"}
    return make_daemon("desk", **reachable(), **model).start()


ANSWER = """Tomorrow will be **sunny**, $20^\\circ$.

| day | sky |
| --- | --- |
| Monday | clear |

```python
print("water them")
```
"""


def test_conversation_of_its_own_is_streamed_as_on_the_page(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna")
    fake_model.will(says(ANSWER))
    phone.ask("how will the weather be?")
    answer = page.locator(".turn .answer")
    expect(answer.locator("strong")).to_have_text("sunny")
    expect(answer.locator("td").first).to_have_text("Monday")
    expect(answer.locator("math")).to_have_count(1)
    expect(answer.locator(".hljs-built_in")).to_have_text("print")
    phone.looks_right("phone-own")
    page.reload()
    expect(page.locator(".turn .answer strong")).to_have_text("sunny")
    phone.opens()
    expect(page.locator(".conversation-title")).to_have_text("how will the weather be?")
    phone.looks_right("phone-sheet")
    assert phone.errors == []
