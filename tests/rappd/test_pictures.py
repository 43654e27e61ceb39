"""Pictures beside a sentence: to the model alone, kept in the record, refused in words where nobody sees them."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fixtures.loopback_server import FakeAzure, FakeGitHub, FakeModel, says
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import Terminal


def png(red: int = 255) -> bytes:
    """A real picture of one pixel."""

    def part(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes([0, red, 0, 0]))
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", pixels) + part(b"IEND", b"")


DATA = base64.b64encode(png()).decode()
PICTURE = {"type": "image/png", "data": DATA, "name": "red [dot].png"}
URL = f"data:image/png;base64,{DATA}"


def _with_model(make_daemon: Callable[..., RunningDaemon], model: FakeModel) -> RunningDaemon:
    return make_daemon(OPENAI_BASE_URL=model.url, OPENAI_MODEL="small").start()


def test_picture_reaches_the_model_and_stays_in_record_and_exports(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    fake_model.will(says("a red dot"))
    turn = str(uuid.uuid4())
    answer = daemon.chat("what is this?", session_id="art", turn_id=turn, pictures=[PICTURE])
    assert answer["response"] == "a red dot"
    assert fake_model.pictures() == [[URL]]
    assert fake_model.asked[-1]["messages"][-1]["content"][0] == {"type": "text", "text": "what is this?"}
    thread = answer["thread"]

    for path in ("/activity", f"/threads/{thread}", f"/threads/{thread}/turns"):
        assert DATA not in daemon.get(path, control=True).body.decode(), "lists hold no pictures"
    assert daemon.get(f"/threads/{thread}/pictures/{turn}", control=True).json() == {"pictures": [PICTURE]}
    assert daemon.get(f"/threads/{thread}/pictures/{turn}").json()["code"] == "not_operator"
    (row,) = daemon.get(f"/conversations/{thread}", control=True).json()["turns"]
    assert row["pictures"] == [{"type": "image/png", "name": "red [dot].png", "bytes": len(png())}]

    lines = daemon.cli("threads", "export", thread, "--format", "jsonl").stdout.splitlines()
    assert json.loads(lines[0])["_x_pictures"] == [PICTURE]
    assert (
        f"![red \\[dot\\].png]({URL})"
        in daemon.cli("threads", "export", thread, "--format", "markdown").stdout
    )
    shown = daemon.cli("threads", "show", thread).stdout.splitlines()
    assert shown[2].endswith("you           what is this?")
    assert shown[3].strip() == f"[picture: red [dot].png, {len(png())} bytes]"
    events = json.loads(daemon.cli("threads", "show", thread, "--json").stdout)["events"]
    assert events[0]["pictures"] == row["pictures"]
    assert "pictures" not in events[1]
    assert daemon.cli("threads", "verify").returncode == 0
    assert DATA not in daemon.log


def test_earlier_pictures_go_along_and_are_words_for_a_model_that_takes_none(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    earlier = [
        {"role": "user", "content": "what is this?", "pictures": [PICTURE]},
        {"role": "assistant", "content": "a red dot"},
    ]
    fake_model.will(says("blue is colder"))
    daemon.chat("and if it were blue?", conversation_history=earlier)
    assert fake_model.pictures() == [[URL]]
    fake_model.picture_status = 400
    fake_model.will(says("I see none"))
    assert daemon.chat("what was it?", conversation_history=earlier)["response"] == "I see none"
    assert fake_model.pictures() == []
    assert "[1 picture that you cannot see]" in fake_model.asked[-1]["messages"][1]["content"]


def test_refusal_of_the_server_is_one_sentence_and_the_next_turn_is_answered(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    fake_model.picture_status = 400
    refused = daemon.post("/chat", {"user_input": "what is this?", "pictures": [PICTURE]})
    assert (refused.status, refused.json()) == (
        422,
        {
            "error": "Model 'small' did not take the picture. The server says: image input is not supported",
            "do": "choose a model that sees pictures, or describe it in words",
            "code": "picture_refused",
        },
    )
    assert daemon.get("/models/pictures").json() == {"model": "small", "pictures": False}  # remembered
    assert daemon.get("/models/pictures?model=big").json() == {"model": "big", "pictures": None}
    fake_model.will(says("hello"))
    assert daemon.chat("hello")["response"] == "hello"
    again = daemon.post("/chat", {"user_input": "and this?", "pictures": [PICTURE]})
    assert again.json()["error"] == "Model 'small' takes no pictures."
    assert len(fake_model.asked) == 1  # it was not asked once more
    (small, big) = daemon.get("/models").json()["models"]
    assert (small["limits"], "limits" in big) == (
        [{"part": "pictures", "text": "cannot see pictures"}],
        False,
    )


def test_what_ollama_tells_of_a_model_spares_the_question(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    assert daemon.get("/models/pictures").json() == {"model": "small", "pictures": None}
    fake_model.sees = False
    assert daemon.get("/models/pictures").json() == {"model": "small", "pictures": False}
    fake_model.will()
    refused = daemon.post("/chat", {"user_input": "what is this?", "pictures": [PICTURE]})
    assert (refused.status, refused.json()["error"]) == (422, "Model 'small' takes no pictures.")
    assert fake_model.asked == []


def test_without_a_model_a_picture_is_refused_and_words_are_not(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon().start()
    refused = daemon.post("/chat", {"user_input": "what is this?", "pictures": [PICTURE]})
    assert (refused.status, refused.json()["code"]) == (422, "picture_refused")
    assert daemon.get("/models/pictures").json()["pictures"] is False
    assert "response" in daemon.chat(
        "hello", conversation_history=[{"role": "user", "content": "x", "pictures": [PICTURE]}]
    )


def test_silent_model_is_no_reason_to_answer_without_seeing(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    fake_model.stop_serving()
    answer = daemon.post("/chat", {"user_input": "what is this?", "pictures": [PICTURE]})
    assert (answer.status, answer.json()["code"]) == (502, "model_unavailable")


def test_copilot_gets_the_header_that_it_asks_for_with_pictures(
    make_daemon: Callable[..., RunningDaemon], fake_github: FakeGitHub
) -> None:
    daemon = make_daemon(GITHUB_TOKEN="ghu_given", **fake_github.environment).start()
    daemon.wait_for(lambda: daemon.get("/health").json()["provider"]["state"] == "ready")
    daemon.chat("hello")
    assert "Copilot-Vision-Request" not in fake_github.headers[-1]
    fake_github.will(says("a red dot"))
    assert daemon.chat("what is this?", pictures=[PICTURE])["response"] == "a red dot"
    assert fake_github.headers[-1]["Copilot-Vision-Request"] == "true"
    assert fake_github.pictures() == [[URL]]


def test_azure_gets_a_picture_as_a_part_and_its_refusal_is_told(
    make_daemon: Callable[..., RunningDaemon], fake_azure: FakeAzure
) -> None:
    daemon = make_daemon(**fake_azure.environment).start()
    fake_azure.will(says("a red dot"))
    assert daemon.chat("what is this?", pictures=[PICTURE])["response"] == "a red dot"
    assert fake_azure.asked[-1]["messages"][-1]["content"] == [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": URL}},
    ]
    fake_azure.picture_status = 400
    refused = daemon.post("/chat", {"user_input": "what is this?", "pictures": [PICTURE]})
    assert (refused.status, refused.json()["code"]) == (422, "picture_refused")
    assert refused.json()["error"].startswith("Model 'eyes' did not take the picture.")


def test_bad_picture_is_refused_before_anything_is_recorded(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    sent: dict[str, Any] = {"type": "image/png", "data": base64.b64encode(b"GIF89a").decode()}
    refused = daemon.post("/chat", {"user_input": "look", "pictures": [sent]})
    assert (refused.status, refused.json()["error"]) == (400, "pictures[0] is image/gif, not image/png")
    assert daemon.get("/threads", control=True).json()["threads"] == []
    assert fake_model.asked == []


# Files on the command line.


def test_chat_sends_picture_files_with_the_sentence(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, tmp_path: Path
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    red, blue = tmp_path / "red [dot].png", tmp_path / "blue.png"
    red.write_bytes(png())
    blue.write_bytes(png(0))
    fake_model.will(says("two dots"))
    done = daemon.cli("chat", "--picture", str(red), "what", "is this?", "--picture", str(blue))
    assert (done.stdout, done.returncode) == ("two dots\n", 0), done.stderr
    other = f"data:image/png;base64,{base64.b64encode(png(0)).decode()}"
    assert fake_model.pictures() == [[URL, other]]
    assert daemon.cli("twins", "new", "Rose").returncode == 0
    fake_model.will(says("a dot"))
    assert daemon.cli("twins", "chat", "rose", "and this?", "--picture", str(red)).stdout == "a dot\n"
    assert fake_model.pictures() == [[URL]]


def test_picture_of_a_conversation_goes_with_its_first_sentence_and_is_remembered(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, tmp_path: Path
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    (file := tmp_path / "dot.png").write_bytes(png())
    fake_model.will(says("a red dot"), says("still red"))
    terminal = Terminal(daemon, "chat", "--picture", str(file))
    terminal.read_until(lambda seen: "With your first sentence: dot.png" in seen.words)
    terminal.type("what is this?\n")
    terminal.read_until(lambda seen: "a red dot" in seen.words)
    terminal.type("which colour?\n")
    terminal.read_until(lambda seen: "still red" in seen.words)
    terminal.type("/exit\n")
    assert terminal.to_end().code == 0
    assert fake_model.pictures() == [[URL]], "the last question has it once, with the first sentence"
    assert fake_model.asked[-1]["messages"][-1]["content"] == "which colour?"


def test_unfit_picture_files_are_refused_by_name_before_anything_is_sent(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, tmp_path: Path
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    files = {
        "dot.png": png(),
        "notes.txt": b"no picture",
        "empty.png": b"",
        "vast.png": png() + bytes(2 << 20),
    }
    gif = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"  # of which nothing is left out
    files |= {f"{n}.gif": gif + bytes(3 << 19) for n in "abc"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for names, code, words in (
        (["notes.txt"], 5, "notes.txt is no PNG, JPEG, GIF or WebP picture"),
        (["dot.png", "empty.png"], 5, "empty.png is empty"),
        (["vast.png"], 5, "vast.png is larger than 2.0 MiB"),
        (["a.gif", "b.gif", "c.gif"], 5, "4.5 MiB together; 4.0 MiB are the most"),
        (["dot.png"] * 5, 5, "--picture has 5 pictures; 4 are the most"),
        (["gone.png"], 4, 'gone.png"'),
    ):
        given = [word for name in names for word in ("--picture", str(tmp_path / name))]
        done = daemon.cli("chat", *given, "look")
        assert (done.returncode, done.stdout) == (code, "")
        assert words in done.stderr.splitlines()[0]
    assert daemon.get("/threads", control=True).json()["threads"] == []
    assert fake_model.asked == []


def test_chat_names_the_model_that_sees_no_picture_file(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, tmp_path: Path
) -> None:
    daemon = _with_model(make_daemon, fake_model)
    (file := tmp_path / "dot.png").write_bytes(png())
    fake_model.sees = False
    done = daemon.cli("chat", "--picture", str(file), "what is this?")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("✗ Model 'small' takes no pictures\n")
    assert fake_model.asked == []
