"""Settings: where they come from, how they are written, and what a running daemon makes of them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import on_terminal
from hypothesis import given, settings
from hypothesis import strategies as st

from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.settings.load import Settings, check, unknown_names
from rappd.settings.registry import BY_NAME, SETTINGS, Setting
from rappd.settings.write import write

SECRET = "sk-very-secret-0123456789"
PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=60)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_environment_wins_over_env_file_over_toml_over_default(idle: RunningDaemon) -> None:
    def shown() -> tuple[str, str]:
        row = json.loads(idle.cli("config", "show", "github.model", "--json").stdout)["settings"][0]
        return row["value"], row["from"]

    assert shown() == ("gpt-4o", "default")
    idle.home.mkdir(mode=0o700, exist_ok=True)
    (idle.home / "rappd.toml").write_text('[github]\nmodel = "from-toml"\n')
    assert shown() == ("from-toml", "rappd.toml")
    (idle.home / ".env").write_text("GITHUB_MODEL=from-env-file\n")
    assert shown() == ("from-env-file", ".env")
    idle.environment["GITHUB_MODEL"] = "from-environment"
    assert shown() == ("from-environment", "environment")
    table = idle.cli("config", "show").stdout
    assert any(
        line.split() == ["github.model", "from-environment", "environment"] for line in table.splitlines()
    )


def test_former_name_is_read_and_replaced_when_it_is_set(idle: RunningDaemon) -> None:
    idle.environment.pop("RAPPD_PEERS_LISTEN", None)
    idle.home.mkdir(mode=0o700, exist_ok=True)
    config = idle.home / "rappd.toml"
    config.write_text("[door]\nbody_mb = 7\n\n[peers]\ndoor = false\n")

    def shown(name: str) -> str:
        return str(json.loads(idle.cli("config", "show", name, "--json").stdout)["settings"][0]["value"])

    assert (shown("http.body_mb"), shown("peers.listen"), shown("peers.door")) == ("7", "off", "off")
    assert "body_mb" not in idle.cli("doctor").stdout  # not among the unknown names
    assert idle.cli("config", "set", "door.body_mb", "9").returncode == 0
    assert (shown("http.body_mb"), "7" in config.read_text()) == ("9", False)
    idle.environment["RAPPD_PEERS_DOOR"] = "on"
    assert shown("peers.listen") == "on"


def test_setting_what_another_source_overrules_is_told(idle: RunningDaemon) -> None:
    idle.environment["GITHUB_MODEL"] = "mine"
    done = idle.cli("config", "set", "github.model", "other")
    assert done.returncode == 0
    assert done.stderr == "! GITHUB_MODEL in the environment wins over it.\n"
    del idle.environment["GITHUB_MODEL"]
    (idle.home / ".env").write_text("GITHUB_MODEL=filed\n")
    assert (
        idle.cli("config", "set", "github.model", "other").stderr == "! GITHUB_MODEL in .env wins over it.\n"
    )


def test_secret_setting_goes_to_private_env_unprinted(idle: RunningDaemon) -> None:
    said = [
        idle.cli("config", "set", "provider.key", SECRET),
        idle.cli("config", "set", "OPENAI_API_KEY", SECRET, "--json"),
        idle.cli("config", "set", "provider.key", stdin=f"{SECRET}\n"),
        idle.cli("config", "show"),
        idle.cli("config", "show", "provider.key"),
        idle.cli("config", "show", "provider.key", "--json"),
        idle.cli("doctor", "--json"),
    ]
    for done in said:
        assert done.returncode in (0, 1)
        assert SECRET not in done.stdout + done.stderr
    assert "provider.key = set  .env" in said[4].stdout
    env_file = idle.home / ".env"
    assert stat.S_IMODE(env_file.stat().st_mode) == 0o600
    assert SECRET in env_file.read_text()
    assert not (idle.home / "rappd.toml").exists()
    idle.environment["OPENAI_API_KEY"] = SECRET
    assert SECRET not in idle.cli("config", "show").stdout


def test_a_secret_file_that_others_could_read_is_made_private(home: Home) -> None:
    home.create()
    home.env_file.write_text("# mine\nOTHER=1\n")
    home.env_file.chmod(0o644)
    write(home, "github.token", "ghp_12345678")
    assert stat.S_IMODE(home.env_file.stat().st_mode) == 0o600
    assert home.env_file.read_text().startswith("# mine\nOTHER=1\n")


@settings(max_examples=40, deadline=None)  # each is synced to the disk, which takes as long as it takes
@given(PLAIN)
def test_a_secret_comes_back_as_it_was_given(tmp_path_factory: pytest.TempPathFactory, secret: str) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    write(home, "provider.key", secret)
    assert Settings.load(home, {}).value("provider.key").text == secret


@pytest.mark.parametrize("secret", ["a'b", 'a"b', "a\\", "\\'", "${HOME}", "$x", "a#b", "a b", "-x", "ü=1"])
def test_a_secret_with_odd_signs_comes_back_too(home: Home, secret: str) -> None:
    write(home, "provider.key", secret)
    assert Settings.load(home, {}).value("provider.key").text == secret


@settings(max_examples=40, deadline=None)  # each is synced to the disk, which takes as long as it takes
@given(PLAIN)
def test_a_text_comes_back_from_rappd_toml(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    home = Home(tmp_path_factory.mktemp("home"))
    write(home, "azure.deployment", text)
    assert Settings.load(home, {}).value("azure.deployment").text == text


def test_comments_and_order_of_rappd_toml_survive(idle: RunningDaemon) -> None:
    idle.home.mkdir(mode=0o700)
    file = idle.home / "rappd.toml"
    file.write_text(
        '# what I call it\nname = "desk"  # short\n\n[agents] # the slow ones\ntimeout = 90\n\n[own]\nthing = 1\n'
    )
    assert idle.cli("config", "set", "agents.timeout", "45").returncode == 0
    assert idle.cli("config", "set", "port", "7171").returncode == 0
    assert idle.cli("config", "set", "provider.url", "http://127.0.0.1:9/v1").returncode == 0
    text = file.read_text()
    for kept in (
        "# what I call it\n",
        'name = "desk"  # short\n',
        "[agents] # the slow ones\n",
        "[own]\nthing = 1\n",
    ):
        assert kept in text
    assert "timeout = 45" in text
    assert text.index("port = 7171") < text.index("[agents]"), "a plain value stays out of the tables"


def test_numbers_and_switches_are_written_as_such(home: Home) -> None:
    write(home, "voice_mode", "YES")
    write(home, "agents.timeout", "45")
    assert home.config.read_text() == "voice_mode = true\n\n[agents]\ntimeout = 45\n"
    settings = Settings.load(home, {})
    assert settings.on("voice_mode")
    assert settings.number("agents.timeout") == 45


@pytest.mark.parametrize(
    ("name", "text"),
    [("port", "0"), ("port", "65536"), ("port", "x"), ("port", ""), ("port", "7e3"), ("port", "٧٠٧١"),
     ("voice_mode", "perhaps"), ("agents.timeout", "soon"), ("agents.timeout", "9" * 30),
     ("name", "two\nlines"), ("name", "bell\x07"), ("provider.key", "a\0b"),
     ("provider.url", "notaurl"), ("provider.url", "http://"), ("provider.url", "ftp://a.b"), ("provider.url", "a:b:c"),
     ("provider.url", "http://a b/v1"), ("provider.url", "http://a:99999999/v1"), ("provider.url", "http://a:0/v1"),
     ("provider.url", "11434"), ("provider.url", "http//localhost"), ("provider.url", "http://.."),
     ("provider.url", "https://https://a.b"), ("provider.url", "file:///etc/passwd"), ("provider.url", "http://-/v1"),
     ("provider.url", "http://me:secret@a.b/v1"), ("provider.url", "me:secret@a.b"), ("azure.endpoint", "mine"),
     ("github.url", "ssh://github.com")],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_nothing_is_written(home: Home, name: str, text: str) -> None:
    with pytest.raises(UsageProblemError):
        write(home, name, text)
    assert not home.config.exists()
    assert not home.env_file.exists()


@pytest.mark.parametrize("bad", ["abc", "99999", "-1", "", "1e400", "nan", "7071; rm"])
def test_a_bad_port_falls_back_to_7071(home: Home, bad: str) -> None:
    assert Settings.load(home, {"PORT": bad}).number("port") == 7071
    assert Settings.load(home, {"PORT": " 8000 "}).number("port") == 8000


NUMBERS = [setting for setting in SETTINGS if setting.kind == "number"]


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
def test_start_with_a_number_out_of_range_exits_2(idle: RunningDaemon, setting: Setting) -> None:
    bounds = f"{setting.name} must be {setting.least} to {setting.most}, not "
    for text in (str(setting.most + 1), "abc", "-1"):
        done = idle.cli("start", **{setting.variable: text})
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f'✗ {bounds}"{text}"\n  → unset {setting.variable}, or ')
        kept = idle.cli("config", "set", setting.name, "--", text)
        assert (kept.returncode, kept.stderr.splitlines()[0]) == (2, f'✗ {bounds}"{text}"')
    assert not idle.home.exists()


@pytest.mark.parametrize("way", [("start", "--detach"), ("start", "--quiet", "--json")])
def test_every_way_to_start_refuses_a_wrong_port(idle: RunningDaemon, way: tuple[str, ...]) -> None:
    done = idle.cli(*way, PORT="99999")
    assert done.returncode == 2
    assert "port must be 1 to 65535" in done.stderr
    assert not idle.home.exists()


def test_start_refuses_wrong_switches_and_choices(idle: RunningDaemon) -> None:
    done = idle.cli("start", VOICE_MODE="perhaps", RAPPD_SANDBOX="none of them")
    assert done.returncode == 2
    assert "voice_mode is a switch; agents.sandbox is one of: auto" in done.stderr


def test_doctor_and_config_show_name_what_start_refuses(idle: RunningDaemon) -> None:
    idle.environment["PORT"] = "abc"
    shown = idle.cli("config", "show", "port")
    assert shown.returncode == 0
    assert shown.stderr.startswith('! port must be 1 to 65535, not "abc"; rappd does not start with it\n')
    assert "1 to 65535" in idle.cli("config", "show", "port").stdout
    doctor = json.loads(idle.cli("doctor", "--json").stdout)["doctor"]
    [found] = [row for row in doctor if row["about"] == "Settings"]
    assert found["verdict"] == "bad"
    assert found["what"] == 'port must be 1 to 65535, not "abc" (environment)'


def test_start_takes_port_0_as_any_free_one(idle: RunningDaemon) -> None:
    done = idle.cli("start", "--detach", "--json", PORT="0")
    try:
        assert json.loads(done.stdout)["daemon"]["port"] > 0
    finally:
        idle.cli("stop")


def test_wrong_value_in_the_file_is_undone_by_what_start_says(idle: RunningDaemon) -> None:
    idle.home.mkdir(mode=0o700)
    (idle.home / "rappd.toml").write_text("# mine\n[agents]\ntimeout = 0\nworkers = 2\n")
    (idle.home / ".env").write_text("RAPPD_BODY_MB=none\nOTHER=1\n")
    refused = idle.cli("start")
    assert refused.returncode == 2
    assert refused.stderr.endswith("rappd config unset agents.timeout\n")
    assert "http.body_mb must be 1 to 4096" in refused.stderr
    assert idle.cli("config", "unset", "agents.timeout").returncode == 0
    assert idle.cli("config", "unset", "http.body_mb").returncode == 0
    assert (idle.home / "rappd.toml").read_text() == "# mine\n[agents]\nworkers = 2\n"
    assert (idle.home / ".env").read_text() == "OTHER=1\n"
    idle.start()


def test_reload_of_a_wrong_value_keeps_those_before(idle: RunningDaemon) -> None:
    idle.start()
    assert idle.cli("config", "set", "agents.timeout", "45").returncode == 0
    (idle.home / "rappd.toml").write_text("[agents]\ntimeout = 0\n")
    answer = idle.post("/settings/reload", {}, control=True)
    assert answer.status == 400
    assert "agents.timeout must be 1 to 86400" in answer.json()["error"]
    rows = {row["name"]: row for row in idle.get("/settings", control=True).json()["settings"]}
    assert rows["agents.timeout"]["value"] == "45"


def test_config_unset_brings_the_default_back(idle: RunningDaemon) -> None:
    idle.cli("config", "set", "github.model", "other")
    idle.cli("config", "set", "provider.key", SECRET)
    done = idle.cli("config", "unset", "github.model")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "✓ github.model is gpt-4o, the default  taken out of rappd.toml\n"
    again = json.loads(idle.cli("config", "unset", "github.model", "--json").stdout)["setting"]
    assert (again["value"], again["from"], again["removed_from"]) == ("gpt-4o", "default", [])
    assert idle.cli("config", "unset", "OPENAI_API_KEY").stdout == (
        "✓ provider.key is empty, the default  taken out of .env\n"
    )
    assert SECRET not in (idle.home / ".env").read_text()
    idle.environment["GITHUB_MODEL"] = "mine"
    assert "is mine, from the environment" in idle.cli("config", "unset", "github.model").stdout
    unknown = idle.cli("config", "unset", "github.modle")
    assert unknown.returncode == 4
    assert "did you mean github.model?" in unknown.stderr


def test_config_unset_counts_at_once_for_a_live_setting(idle: RunningDaemon) -> None:
    idle.start()
    idle.cli("config", "set", "voice_mode", "on")
    assert idle.get("/health").json()["voice_mode"] is True
    assert idle.cli("config", "unset", "voice_mode").stderr == ""
    assert idle.get("/health").json()["voice_mode"] is False
    idle.cli("config", "set", "agents.workers", "2")
    assert "It counts from the next start" in idle.cli("config", "unset", "agents.workers").stderr


@pytest.mark.parametrize("content", ["port = \n", "[a\n", 'agents = "x"\nagents.timeout = 3\n'])
def test_a_broken_settings_file_is_named_and_left_alone(idle: RunningDaemon, content: str | bytes) -> None:
    idle.home.mkdir(mode=0o700)
    raw = content if isinstance(content, bytes) else content.encode()
    (idle.home / "rappd.toml").write_bytes(raw)
    for verb in (("config", "show"), ("config", "set", "name", "x"), ("start",)):
        done = idle.cli(*verb)
        assert done.returncode == 2
        assert "rappd.toml cannot be read" in done.stderr
        assert done.stderr.splitlines()[-1] == "  → mend the file, or move it away"
    assert (idle.home / "rappd.toml").read_bytes() == raw


def test_a_value_where_a_table_belongs_is_refused(home: Home) -> None:
    home.create()
    home.config.write_text('provider = "ollama"\n')
    with pytest.raises(UsageProblemError, match="is no table"):
        write(home, "provider.url", "http://127.0.0.1:1")
    assert home.config.read_text() == 'provider = "ollama"\n'


def test_names_that_nobody_reads_are_found(home: Home) -> None:
    home.create()
    home.config.write_text('voicemode = true\n[provider]\nurl = "x"\nurll = "x"\n')
    assert unknown_names(home) == ["voicemode", "provider.urll"]


def test_soul_and_agents_paths_resolve_against_the_workspace(idle: RunningDaemon, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far_agent.py").write_text(agent_source("Far"))
    mine = idle.home / "brainstem" / "mine"
    mine.mkdir(parents=True)
    (mine / "near_agent.py").write_text(agent_source("Near"))
    idle.environment.update(AGENTS_PATH="mine", SOUL_PATH="souls/calm.md")
    names = [row["name"] for row in json.loads(idle.cli("agents", "list", "--json").stdout)["agents"]]
    assert "Near" in names
    idle.start()
    health = idle.get("/health").json()
    assert "Near" in health["agents"]
    assert health["soul"] == str(idle.home / "brainstem" / "souls" / "calm.md")
    idle.stop()
    idle.environment["AGENTS_PATH"] = str(elsewhere)
    idle.start()
    assert "Far" in idle.agent_names()
    assert "Near" not in idle.agent_names()


def test_live_settings_count_at_once_and_others_say_when(idle: RunningDaemon) -> None:
    idle.start()
    assert idle.get("/health").json()["voice_mode"] is False
    live = idle.cli("config", "set", "voice_mode", "on")
    assert live.returncode == 0
    assert live.stderr == ""
    assert idle.get("/health").json()["voice_mode"] is True
    assert "voice_response" in idle.chat("hello")
    (idle.home / "rappd.toml").write_text("voice_mode = false\n")
    idle.cli("config", "set", "twin_mode", "on")
    assert idle.get("/health").json()["voice_mode"] is False, "the whole file is read anew"
    later = idle.cli("config", "set", "store.strict", "on")
    assert later.stderr.startswith("! It counts from the next start\n  → ")


def test_asking_for_a_value_only_where_somebody_can_answer(idle: RunningDaemon) -> None:
    assert idle.cli("config", "set", "provider.key").returncode == 2
    assert idle.cli("config", "set", "provider.key").stderr.startswith("✗ VALUE is missing")


def test_one_setting_tells_what_it_is_for(idle: RunningDaemon) -> None:
    seen = on_terminal(idle, "config", "show", "voice_mode", columns=60)
    assert seen.lines[0] == "voice_mode = off  default"
    assert "Variable VOICE_MODE; counts at once." in " ".join(line.strip() for line in seen.lines)


@pytest.mark.parametrize(
    "text", ["localhost", "desk:8080", "127.0.0.1:11434/v1", "models.example.org", "https://a/v1", ""]
)
def test_address_of_a_model_server_may_be_typed_in_the_usual_ways(text: str) -> None:
    assert check(BY_NAME["provider.url"], text) == text


def test_every_default_fits_its_own_setting() -> None:
    for setting in SETTINGS:
        assert check(setting, setting.default) == setting.default
        assert BY_NAME[setting.name] is setting
        assert setting.help.endswith(".")
