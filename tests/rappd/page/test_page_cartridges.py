"""A cartridge as a person runs it: a real browser on a real daemon, and the terminal before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, expect

from twins.cartridges import json_documents, lispy_file

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(1200),
    needs_chromium,
]


SQUARES = "(define (square n) (* n n)) (for-each (lambda (n) (println n (square n))) (range 1 6)) (+ 20 22)"
GREETER = '(println "Who is there?") (define who (next-input)) (println "Hello," who) (list who (next-input))'
ENDLESS = "(for-each (lambda (i) (for-each (lambda (j) (* i j)) (range 10000))) (range 10000))"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    """A browser keeps what it has fetched and compiled."""
    return browser.new_page()


@pytest.fixture
def page(tab: Page, fake_daemon: RunningDaemon) -> Iterator[Page]:
    """A page to which everything is new, and whose console must stay clean, the content policy included."""
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.emulate_media(color_scheme="light")
    said: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            said.append(message.text)

    def fail(error: Error) -> None:
        said.append(str(error))

    tab.on("console", hear)
    tab.on("pageerror", fail)
    yield tab
    origin = f"http://127.0.0.1:{fake_daemon.port}"
    tab.goto(f"{origin}/web/css/base.css")  # nothing runs there
    tab.evaluate("sessionStorage.clear()")
    protocol = tab.context.new_cdp_session(tab)
    protocol.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    protocol.detach()
    tab.context.clear_cookies()
    tab.remove_listener("console", hear)
    tab.remove_listener("pageerror", fail)
    assert [text for text in said if "Failed to load" not in text] == []


@pytest.fixture
def desk(fake_daemon: RunningDaemon, page: Page) -> Page:
    """The page at Twins › Cartridges."""
    page.goto(fake_daemon.post("/operator/key", control=True).json()["url"])
    page.get_by_role("link", name="Twins").click()
    page.get_by_role("link", name="Cartridges").click()
    return page


def written(folder: Path, name: str, source: str, **more: Any) -> Path:
    """A cartridge's file, of one program."""
    document = lispy_file.new(name, {"main": source}, description=f"{name} does one thing.") | more
    file = folder / f"{name.replace('/', '_')}.lispy.json"
    file.write_bytes(json_documents.encode(document))
    return file


def opened(desk: Page, *files: Path) -> Page:
    # By its name: until the address has changed, the place before it still stands there, and takes eggs.
    desk.get_by_label("Open a cartridge").set_input_files(list(files))
    return desk


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def output(page: Page) -> Locator:
    return page.get_by_label("What it wrote")


def saved(page: Page, into: Path, name: str = "Save") -> Path:
    with page.expect_download() as download:
        button(page, name).click()
    file = into / download.value.suggested_filename
    download.value.save_as(file)
    return file


def in_the_terminal(daemon: RunningDaemon, *arguments: str | Path) -> dict[str, Any]:
    done = daemon.cli("cartridge", *map(str, arguments), "--json")
    assert done.returncode in (0, 8), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["cartridge"]
    return found


def test_a_program_runs_to_its_end(desk: Page, tmp_path: Path) -> None:
    opened(desk, written(tmp_path, "squares", SQUARES))
    expect(desk.get_by_role("heading", name="squares")).to_be_visible()
    expect(desk.locator(".cartridge")).to_contain_text("squares does one thing.")
    expect(desk.locator(".cartridge")).to_contain_text("Not signed")
    expect(desk.get_by_label("main")).to_contain_text("(define (square n)")
    button(desk, "Run").click()
    expect(desk.locator(".cartridge-status")).to_contain_text("✓ Done in")
    expect(output(desk)).to_have_text("1 1\n2 4\n3 9\n4 16\n5 25\n")
    expect(desk.get_by_text("It came to 42")).to_be_visible()
    expect(desk.locator(".cartridge [aria-live=polite]")).to_contain_text("5 25")
    expect(desk.locator(".cartridge")).to_contain_text("1 run done")
    button(desk, "Run again").click()
    expect(desk.locator(".cartridge")).to_contain_text("2 runs done")


def test_what_runs_cartridges_cannot_be_fetched_for_a_while(desk: Page, tmp_path: Path) -> None:
    desk.route("**/cartridge-state.js", lambda route: route.abort())
    opened(desk, written(tmp_path, "squares", SQUARES))
    expect(desk.locator("#main .problem")).to_contain_text("The computer isn't answering.")
    desk.unroute("**/cartridge-state.js")
    opened(desk, written(tmp_path, "squares", SQUARES))
    expect(desk.get_by_role("heading", name="squares")).to_be_visible()


def test_stopped_expression_resumes_in_the_terminal(
    fake_daemon: RunningDaemon, desk: Page, tmp_path: Path
) -> None:
    file = written(tmp_path, "squares", SQUARES)
    whole = in_the_terminal(fake_daemon, "run", file)
    opened(desk, file)
    for _ in range(31):
        button(desk, "Step").click()
    steps = desk.get_by_role("progressbar", name="Steps used").evaluate("bar => bar.value")
    assert steps >= 31, "a builtin that goes through many items costs more than one"
    expect(desk.locator(".cartridge-status")).to_contain_text(f"Paused after {steps} steps")
    expect(desk.locator(".cartridge-next")).to_contain_text("Next: ")
    expect(desk.get_by_text(f"Step limit: {steps} steps of 100,000 used")).to_be_visible()
    begun = saved(desk, tmp_path)
    at = json_documents.parse(begun.read_bytes())["_meta"]["exported_at"]
    stopped = tmp_path / "stopped.lispy.json"
    in_the_terminal(fake_daemon, "freeze", file, "--after", str(steps), "-o", stopped, "--at", at)
    assert begun.read_bytes() == stopped.read_bytes(), "the file that the terminal writes at the same step"
    resumed = in_the_terminal(fake_daemon, "resume", begun)
    assert (resumed["output"], resumed["frames"]) == (whole["output"], whole["frames"])
    button(desk, "Resume").click()
    expect(desk.locator(".cartridge-status")).to_contain_text(f"Done in {whole['steps']} steps.")
    expect(output(desk)).to_have_text(whole["output"])


def test_stopped_in_the_terminal_it_goes_on_in_the_page(
    fake_daemon: RunningDaemon, desk: Page, tmp_path: Path
) -> None:
    file = written(tmp_path, "squares", SQUARES)
    in_the_terminal(fake_daemon, "freeze", file, "--after", "60")
    ended = tmp_path / "ended.lispy.json"
    opened(desk, file, file.with_name(f"{file.name}.sig"))
    expect(desk.locator(".cartridge")).to_contain_text("✓ Signed by this machine")
    expect(desk.locator(".cartridge-status")).to_contain_text("Paused after 60 steps")
    expect(output(desk)).to_contain_text("1 1\n2 4\n")
    button(desk, "Resume").click()
    expect(desk.get_by_text("It came to 42")).to_be_visible()
    page_file = saved(desk, tmp_path)
    at = json_documents.parse(page_file.read_bytes())["_meta"]["exported_at"]
    told = in_the_terminal(fake_daemon, "resume", file, "-o", ended, "--at", at)
    expect(output(desk)).to_have_text(told["output"])
    assert page_file.read_bytes() == ended.read_bytes()


def test_cartridge_question_is_answered_by_keyboard(
    fake_daemon: RunningDaemon, desk: Page, tmp_path: Path
) -> None:
    opened(desk, written(tmp_path, "greeter", GREETER))
    button(desk, "Run").focus()
    desk.keyboard.press("Enter")
    expect(desk.get_by_label("Your answer")).to_be_focused()
    asking = saved(desk, tmp_path)
    told = in_the_terminal(fake_daemon, "resume", asking, "--input", '"Zoë"', "--input", "7")
    assert told["frames"][-1]["result"] == '("Zoë" 7)'
    desk.get_by_label("Your answer").focus()
    desk.keyboard.type("Zoë")
    desk.keyboard.press("Enter")
    expect(output(desk)).to_have_text("Who is there?\nHello, Zoë\n")
    expect(desk.locator(".cartridge-status")).to_contain_text("It waits for your answer.")
    desk.get_by_label("What it is").select_option("A number")
    desk.get_by_label("Your answer").fill("seven")
    desk.keyboard.press("Enter")
    expect(desk.locator(".cartridge .problem")).to_contain_text('"seven" is no number.')
    desk.get_by_label("Your answer").fill("7")
    desk.keyboard.press("Enter")
    expect(desk.get_by_text('It came to ("Zoë" 7)')).to_be_visible()


def test_saved_cartridge_is_signed_until_edited(
    fake_daemon: RunningDaemon, desk: Page, tmp_path: Path
) -> None:
    opened(desk, written(tmp_path, "squares", SQUARES.replace("(+ 20 22)", "(define sum 42)")))
    button(desk, "Run").click()
    expect(desk.locator(".cartridge-status")).to_contain_text("Done in")
    file = saved(desk, tmp_path)
    signature = saved(desk, tmp_path, "Save its signature")
    assert signature.name == f"{file.name}.sig"
    assert in_the_terminal(fake_daemon, "inspect", file)["signer"]["standing"] == "self"
    file.write_text(file.read_text().replace('"sum": 42', '"sum": 43'))
    button(desk, "All cartridges").click()
    opened(desk, file, signature)
    expect(desk.locator(".cartridge")).to_contain_text("! Not signed.")
    expect(desk.locator(".cartridge")).to_contain_text(
        "was changed after it was signed; it counts as unsigned"
    )
    expect(desk.locator(".cartridge")).to_contain_text("sum was changed by hand.")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"_meta": {"type": "lispy-cart', "is damaged (line 1 is not JSON); nothing was opened."),
        ('{"_meta": {"type": "something else"}}', "is no LisPy cartridge."),
        ('{"_meta": {"type": "lispy-cartridge"}, "programs": 3}', "programs is not an object of texts."),
    ],
)
def test_cartridge_broken_file_shows_reason(desk: Page, tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "broken.lispy.json"
    file.write_text(content)
    opened(desk, file)
    expect(desk.locator("#main .problem")).to_contain_text(sentence)
    opened(desk, written(tmp_path, "whole", SQUARES))
    expect(desk.get_by_role("heading", name="whole")).to_be_visible()


def test_cartridge_forged_image_is_refused(fake_daemon: RunningDaemon, desk: Page, tmp_path: Path) -> None:
    file = written(tmp_path, "squares", SQUARES)
    in_the_terminal(fake_daemon, "freeze", file, "--after", "60")
    document = json.loads(file.read_text())
    document["continuation"]["image"]["stack"][0]["kind"] = "everything"
    file.write_text(json.dumps(document))
    opened(desk, file)
    expect(desk.locator("#main .problem")).to_contain_text("This image is damaged (stack 0: no known kind)")


def test_endless_program_keeps_page_responsive(desk: Page, tmp_path: Path) -> None:
    opened(desk, written(tmp_path, "endless", ENDLESS))
    desk.get_by_label("How far it may go").select_option("up to 100,000,000 steps")
    button(desk, "Run").click()
    expect(button(desk, "Pause and keep")).to_be_focused()
    desk.get_by_text("Input", exact=True).click()
    desk.get_by_label("What it gets when it asks").fill("still here")
    expect(desk.get_by_label("What it gets when it asks")).to_have_value("still here")
    bar = desk.get_by_role("progressbar", name="Steps used")
    before = bar.evaluate("bar => bar.value")
    desk.wait_for_function("before => document.querySelector('.fuel progress').value > before", arg=before)
    button(desk, "Pause and keep").click()
    expect(desk.locator(".cartridge-status")).to_contain_text("kept in this browser")
    steps = bar.evaluate("bar => bar.value")
    desk.reload()
    button(desk, "Go on with endless").click()
    expect(desk.locator(".cartridge-status")).to_contain_text(f"Paused after {steps:,} steps")
    button(desk, "Resume").click()
    desk.wait_for_function("before => document.querySelector('.fuel progress').value > before", arg=steps)
    button(desk, "Start over").click()
    expect(button(desk, "Run")).to_be_focused()
    button(desk, "All cartridges").click()
    button(desk, "Forget endless").click()
    expect(button(desk, "Go on with endless")).to_have_count(0)


def test_cartridge_failure_shows_reason_and_changes_nothing(desk: Page, tmp_path: Path) -> None:
    status = desk.locator(".cartridge-status")
    opened(desk, written(tmp_path, "far", ENDLESS))
    button(desk, "Run").click()
    expect(status).to_contain_text("It reached its limit of 100,000 steps and was stopped.")
    expect(desk.get_by_text("Let it go further, and run it again.")).to_be_visible()
    desk.get_by_label("How far it may go").select_option("up to 1,000,000 steps")
    button(desk, "Run").click()
    expect(status).to_contain_text("It reached its limit of 1,000,000 steps and was stopped.")
    for name, source, why in (
        ("lost", "(println nobody)", "The program ended with a mistake: unbound variable: nobody."),
        ("open", "(println 1", "The program cannot be read: main:1:1: unclosed delimiter '('."),
        ("deep", "(define (f n) (f n)) (f 1)", "It called itself, within itself, more often than it may"),
    ):
        button(desk, "All cartridges").click()
        opened(desk, written(tmp_path, name, source))
        button(desk, "Run").click()
        expect(status).to_contain_text(why)
        expect(desk.get_by_text("The cartridge is as it was before.")).to_be_visible()
    empty = written(tmp_path, "empty", "1")
    empty.write_text('{"_meta": {"type": "lispy-cartridge", "agent_id": "empty"}}')
    button(desk, "All cartridges").click()
    opened(desk, empty)
    button(desk, "Run").click()
    expect(status).to_contain_text("This cartridge holds no program; it can be kept, not run.")


def test_dropped_cartridge_plan_offers_to_run_it(
    fake_daemon: RunningDaemon, desk: Page, tmp_path: Path
) -> None:
    desk.get_by_role("link", name="Eggs").click()
    file = written(tmp_path, "squares", SQUARES)
    in_the_terminal(fake_daemon, "freeze", file, "--after", "40")
    contents = {one.name: one.read_text() for one in (file, file.with_name(f"{file.name}.sig"))}
    desk.evaluate(
        """files => {
            const carried = new DataTransfer();
            for (const [name, text] of Object.entries(files)) carried.items.add(new File([text], name));
            for (const type of ["dragenter", "dragover", "drop"])
                document.body.dispatchEvent(new DragEvent(type, {dataTransfer: carried, bubbles: true, cancelable: true}));
        }""",
        contents,
    )
    expect(desk.locator("dialog")).to_contain_text("a LisPy cartridge")
    expect(desk.locator("dialog")).to_contain_text("✓ Signed by this machine")
    button(desk, "Run it here").click()
    expect(desk.locator("dialog")).to_have_count(0)
    expect(desk.locator(".cartridge")).to_contain_text("✓ Signed by this machine")
    button(desk, "Resume").click()
    expect(desk.get_by_text("It came to 42")).to_be_visible()


def test_cartridges_beside_agents_are_listed_and_open(fake_daemon: RunningDaemon, page: Page) -> None:
    file = written(fake_daemon.agents, "clock", "(println echo-frame) echo-frame")
    broken = fake_daemon.agents / "torn.lispy.json"
    broken.write_text("{")
    try:
        page.goto(fake_daemon.post("/operator/key", control=True).json()["url"])
        page.get_by_role("link", name="Twins").click()
        page.get_by_role("link", name="Cartridges").click()
        expect(page.locator("#main")).to_contain_text("torn.lispy.json is damaged")
        button(page, "Open clock").click()
        button(page, "Run").click()
        expect(page.get_by_text("It came to 1")).to_be_visible()
        assert json_documents.parse(file.read_bytes()).get("continuation") is None, "the file stays as it is"
    finally:
        file.unlink()
        broken.unlink()


def test_invalid_agent_among_agents_opens_apart(fake_daemon: RunningDaemon, page: Page) -> None:
    file = written(fake_daemon.agents, "sums", "(+ 40 2)")
    try:
        page.goto(fake_daemon.post("/operator/key", control=True).json()["url"])
        page.get_by_role("link", name="Agents").first.click()
        card = page.locator("[data-file='sums.lispy.json']")
        expect(card).to_contain_text("A program that runs by itself; it gives no agent.")
        expect(page.locator("#main")).not_to_contain_text("Quarantined")
        card.get_by_role("button", name="Open sums.lispy.json").click()
        button(page, "Run").click()
        expect(page.get_by_text("It came to 42")).to_be_visible()
    finally:
        file.unlink()


def test_cartridges_of_twin_are_listed_and_open(fake_daemon: RunningDaemon, page: Page) -> None:
    key = fake_daemon.post("/twins", {"name": "Rose"}, control=True).json()["key"]
    written(fake_daemon.home / "twins" / key / "agents", "clock", "(+ 40 2)")
    page.goto(fake_daemon.post("/operator/key", control=True).json()["url"])
    page.get_by_role("link", name="Twins").click()
    page.get_by_role("link", name="Cartridges").click()
    expect(page.get_by_role("listitem").filter(has_text="of Rose")).to_contain_text("clock")
    button(page, "Open clock of Rose").click()
    button(page, "Run").click()
    expect(page.get_by_text("It came to 42")).to_be_visible()


def test_cartridge_narrow_screen_has_one_column(desk: Page, tmp_path: Path) -> None:
    desk.set_viewport_size({"width": 320, "height": 640})
    long = "a" * 400
    opened(desk, written(tmp_path, "x" * 80, f'(define {long} "{long}") (println {long}) (next-input)'))
    for name in ("Step", "Run"):
        if name == "Run":
            name = "Resume"
        button(desk, name).click()
        wide = desk.evaluate(
            "document.querySelector('#main').scrollWidth > 320 || document.body.scrollWidth > 320"
        )
        assert not wide
        if name == "Step":
            desk.get_by_text("Position").click()
    expect(desk.get_by_label("Your answer")).to_be_visible()
    small = desk.evaluate(
        """[...document.querySelectorAll('.cartridge button, .cartridge select, .cartridge summary')]
            .filter(one => one.offsetParent && one.getBoundingClientRect().height < 44).map(one => one.innerText)"""
    )
    assert small == []


def test_cartridge_output_stays_text(desk: Page, tmp_path: Path) -> None:
    markup = "<img src=x onerror='document.title=1'><script>document.title=2</script>"
    source = f'(println "{markup}") (define it "{markup}") "{markup}"'
    opened(desk, written(tmp_path, markup, source, soul=markup, tools={markup: {}}))
    title = desk.title()
    button(desk, "Run").click()
    expect(output(desk)).to_have_text(markup + "\n")
    expect(desk.get_by_text("It came to ")).to_contain_text(markup)
    expect(desk.get_by_role("heading", name=markup)).to_be_visible()
    assert desk.locator(".cartridge :is(img, script)").count() == 0
    assert desk.title() == title


def test_of_much_output_the_end_is_shown_and_all_of_it_saved(
    fake_daemon: RunningDaemon, desk: Page, tmp_path: Path
) -> None:
    source = "(for-each (lambda (n) (println n)) (range 14000))"
    opened(desk, written(tmp_path, "talker", source))
    button(desk, "Run").click()
    expect(desk.locator(".cartridge-status")).to_contain_text("Done in")
    expect(desk.get_by_text("Only the end of it is shown")).to_be_visible()
    expect(output(desk)).to_contain_text("\n13999\n")
    kept = json_documents.parse(saved(desk, tmp_path).read_bytes())["echoes"][-1]["output"]
    assert kept == "".join(f"{number}\n" for number in range(14000))


def test_cartridge_more_steps_keeps_inputs(desk: Page, tmp_path: Path) -> None:
    source = "(define (run who) (for-each (lambda (n) (* n n)) (range 60000)) (println who))"
    opened(desk, written(tmp_path, "slow", source))
    desk.get_by_text("Input", exact=True).click()
    desk.get_by_label("What it gets when it asks").fill("Ada")
    desk.keyboard.press("Enter")
    expect(desk.get_by_text("1 thing given that it has not taken yet.")).to_be_visible()
    button(desk, "Run").click()
    expect(desk.locator(".cartridge-status")).to_contain_text("It reached its limit of")
    expect(desk.get_by_text("1 thing given that it has not taken yet.")).to_be_visible()
    desk.get_by_label("How far it may go").select_option("up to 1,000,000 steps")
    button(desk, "Run").click()
    expect(output(desk)).to_have_text("Ada\n")
