"""The page's files as the daemon serves them: few round trips, and what browsers may keep."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from fixtures.chromium import chromium, needs_chromium
from fixtures.running_daemon import RunningDaemon

import rappd
from rappd.listeners.web_assets import WebAssets, static_imports

_PRELOADED = re.compile(r'<link rel="modulepreload" href="([^"]+)">')
_MOST_REQUESTS = 60
_METAPHOR = re.compile(
    r"(?<![a-z])(house|door|gate|lane|bell|desk|shelf|shelve|keeper|rung|ladder|seat|crew|room|cellar|nursery)s?(?![a-z])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
WEB = Path(rappd.__file__).parent / "web"


def _page(folder: Path, **modules: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text(
        '  <link rel="stylesheet" href="/web/css/b.css">\n  <link rel="stylesheet" href="/web/css/a.css">\n'
        '  <script type="module" src="/web/main.js"></script>\n'
    )
    (folder / "css").mkdir(exist_ok=True)
    (folder / "css" / "a.css").write_text("a {}")
    (folder / "css" / "b.css").write_text("b {}")
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return folder


def test_web_folders_hold_at_most_12_files() -> None:
    folders = {path.parent for path in WEB.rglob("*") if path.is_file()}
    flat = [folder for folder in folders if not any(path.is_dir() for path in folder.iterdir())]
    sizes = {folder.relative_to(WEB).as_posix(): len(list(folder.iterdir())) for folder in flat}
    assert len(sizes) > 10
    assert {folder: size for folder, size in sizes.items() if size > 12} == {}


def test_vendored_files_have_the_recorded_hashes() -> None:
    vendor = WEB / "vendor"
    rows = re.findall(
        r"^\| `(\w+/)` \|.*?\| `([0-9a-f]{64})` \|", (vendor / "README.md").read_text(), re.MULTILINE
    )
    recorded = {digest for _, digest in rows}
    present = [path for path in vendor.rglob("*.js") if path.name != "entry.js"]
    assert len(present) >= 3
    assert {hashlib.sha256(path.read_bytes()).hexdigest() for path in present} <= recorded


def test_web_files_use_no_metaphors() -> None:
    files = [
        path
        for path in WEB.rglob("*")
        if path.suffix in {".js", ".css", ".html"} and "vendor" not in path.parts
    ]
    assert len(files) > 100
    found = [
        f"{path.relative_to(WEB)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if _METAPHOR.search(_CAMEL.sub(" ", line)) or _METAPHOR.search(path.stem)
    ]
    assert found == []


def test_web_modules_import_only_existing_modules_without_cycles() -> None:
    files = {path.relative_to(WEB).as_posix(): path.read_bytes() for path in WEB.rglob("*.js")}
    for name in files:
        imported = static_imports(files, name)
        assert not (name.startswith("lib/") and any(one.startswith("components/") for one in imported)), name
        direct = [one for one in imported[1:] if name in static_imports(files, one)]
        assert direct == [], f"{name} is in a cycle with {direct}"


def test_static_imports_finds_every_form_once() -> None:
    files = {
        "main.js": b'import {\n  a,\n} from "./a.js";\nimport "./lib/b.js";\nexport * from "./c.js";\n',
        "a.js": b'import * as b from "./lib/b.js";\nconst later = () => import("./d.js"); // import "./e.js"\n',
        "lib/b.js": b'import c from "../c.js";\n',
        "c.js": b"",
    }
    assert static_imports(files, "main.js") == ["main.js", "a.js", "lib/b.js", "c.js"]


def test_web_assets_joins_style_sheets_in_order(tmp_path: Path) -> None:
    assets = WebAssets.load(_page(tmp_path, main=""))
    assert assets.files["page.css"] == b"b {}\na {}"
    assert assets.index.decode().count('rel="stylesheet"') == 1


def test_web_assets_version_changes_with_any_file(tmp_path: Path) -> None:
    first = WebAssets.load(_page(tmp_path, main='import "./a.js";', a="1"))
    second = WebAssets.load(_page(tmp_path, main='import "./a.js";', a="2"))
    assert first.version != second.version
    assert f'"/web/{first.version}/a.js"' in first.index.decode()
    assert second.find(f"{second.version}/a.js") == ("a.js", b"2", True)
    assert second.find(f"{first.version}/a.js") == ("a.js", b"2", False)
    assert second.find("a.js") == ("a.js", b"2", False)
    assert second.find("../secret") is None


def test_page_files_are_immutable_only_at_their_hash(fake_daemon: RunningDaemon) -> None:
    index = fake_daemon.request("GET", "/")
    assert index.headers["cache-control"] == "no-cache"
    address = _PRELOADED.findall(index.body.decode())[0]
    hashed = fake_daemon.request("GET", address)
    plain = fake_daemon.request("GET", "/web/main.js")
    assert "immutable" in hashed.headers["cache-control"]
    assert plain.headers["cache-control"] == "no-cache"
    assert hashed.body == plain.body
    assert hashed.headers["content-type"] == "text/javascript; charset=utf-8"
    for answer in (index, hashed, plain):
        assert "script-src 'self';" in answer.headers["content-security-policy"]


@pytest.mark.browser
@needs_chromium
def test_cold_page_fetches_just_what_it_preloads(fake_daemon: RunningDaemon) -> None:
    asked: list[str] = []
    origin = f"http://127.0.0.1:{fake_daemon.port}"
    with chromium() as browser:
        page = browser.new_context().new_page()
        page.on("request", lambda request: asked.append(request.url.removeprefix(origin)))
        page.goto(f"{origin}/")
        page.locator("#write:focus").wait_for()
        before = list(asked)
        page.get_by_role("link", name="Settings").click()
        page.locator("h1", has_text="Settings").wait_for()
    preloaded = _PRELOADED.findall(fake_daemon.request("GET", "/").body.decode())
    assert [address for address in before if address.endswith(".js")] == preloaded
    assert len(before) <= _MOST_REQUESTS
    modules = [
        re.sub(r"^/web/[0-9a-f]{16}/", "/web/", address) for address in asked if address.endswith(".js")
    ]
    assert len(modules) == len(set(modules)), "no module under two addresses"
    assert any(address.endswith("/pages/settings.js") for address in asked), "other pages come later"


@pytest.mark.browser
@needs_chromium
def test_once_the_page_has_settled_it_has_what_works_without_the_daemon(fake_daemon: RunningDaemon) -> None:
    asked: set[str] = set()
    with chromium() as browser:
        page = browser.new_context().new_page()
        page.clock.install()
        page.on("request", lambda request: asked.add(request.url.rpartition("/")[2]))
        page.goto(f"http://127.0.0.1:{fake_daemon.port}/")
        page.locator("#write:focus").wait_for()
        assert "settings.js" not in asked
        with page.expect_response("**/lispy/machine.js"):
            page.clock.fast_forward(10_000)
    assert {"settings.js", "search-palette.js", "cartridge-state.js"} <= asked


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_navigation_shows_before_any_module_arrives(fake_daemon: RunningDaemon, width: int) -> None:
    address = f"http://127.0.0.1:{fake_daemon.port}/"
    places = """Array.from(document.querySelectorAll('header nav a.place'), link => [
        link.hash, link.className, link.children[1].textContent, JSON.stringify(link.getBoundingClientRect())])"""
    with chromium() as browser:
        page = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        page.route("**/*.js", lambda route: route.abort())
        page.goto(address)
        page.get_by_role("link", name="Machines").wait_for()
        before = page.evaluate(places)
        page.unroute("**/*.js")
        page.goto(address)
        page.reload()
        page.locator("#write:focus").wait_for()
        after = page.evaluate(places)
    assert len(before) == 8
    assert before == after, "the same links at the same places"
