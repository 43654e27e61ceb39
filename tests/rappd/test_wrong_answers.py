"""Answers of a wrong form, sent by real agents over the worker's own socket, cost the call that they are for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

_DEEP = "[" * 900 + "]" * 900
_FRAMES = {
    "no array": "null",
    "empty": "",
    "not JSON": "[0,ID",
    "without a value": "[0,ID]",
    "two values": '[0,ID,{"result":"x"},{}]',
    "a kind that is none": "[7,ID,null]",
    "a kind that is text": '["0",ID,null]',
    "not UTF-8": '[0,ID,{"result":"\xff\xfe"}]',
    "half a character": '[0,ID,{"result":"\\ud800"}]',
    "null": "[0,ID,null]",
    "without a result": '[0,ID,{"data_slush":{}}]',
    "a result that is a number": '[0,ID,{"result":7}]',
    "a result that is no number": '[0,ID,{"result":NaN}]',
    "a list": '[0,ID,["x"]]',
    "slush that is text": '[0,ID,{"result":"x","data_slush":"y"}]',
    "slush that is a list": '[0,ID,{"result":"x","data_slush":[1]}]',
    "slush with no number": '[0,ID,{"result":"x","data_slush":{"a":NaN}}]',
    "deep slush": f'[0,ID,{{"result":"x","data_slush":{{"a":{_DEEP}}}}}]',
    "very deep slush": '[0,ID,{{"result":"x","data_slush":{}}}]'.format(
        (_DEEP * 1).replace("[", "[[[").replace("]", "]]]")
    ),
    "slush of many parts": '[0,ID,{{"result":"x","data_slush":{{"a":[{}]}}}}]'.format(
        ",".join(["[]"] * 30_000)
    ),
    "an error that is null": "[1,ID,null]",
    "an error without fields": "[1,ID,{}]",
    "an error with a deep message": f'[1,ID,{{"kind":"K","message":{_DEEP},"line":1,"trace":""}}]',
    "an error with a long line": '[1,ID,{"kind":"K","message":"m","line":"%s","trace":""}]' % ("9" * 5000),
    "a callback without arguments": '[2,ID,["llm"]]',
    "a callback with a list": '[2,ID,["llm",[]]]',
    "a callback that is a number": "[2,ID,7]",
    "a callback of many parts": '[2,ID,["llm",{{"messages":[{}]}}]]'.format(",".join(["[]"] * 150_000)),
    "a second start": "[3,0,null]",
    "a late refusal": "[4,0,{}]",
}
_SENDS = """
import struct, time
from agents.runtimes.python.worker import channel
me = channel._channel
frame = kwargs["frame"].encode("latin-1").replace(b"ID", str(me.call_id).encode())
me._stream.sendall(struct.pack(">I", len(frame)) + frame)
time.sleep(60)
"""
_TEXT = '{"frame": {"type": "string"}}'
_REPLIES = {
    "a status that is none": '{"status":9999,"headers":{},"body":""}',
    "a status that is text": '{"status":"200","headers":{},"body":""}',
    "headers that are a list": '{"status":200,"headers":[],"body":""}',
    "a header with a line break": '{"status":200,"headers":{"X-A":"b\\r\\nSet-Cookie: c=d"},"body":""}',
    "a body that is no base64": '{"status":200,"headers":{},"body":"%%%"}',
    "nothing": "{}",
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("wrong") / "home", LLM_FAKE="1", RAPPD_AGENT_TIMEOUT="100")
    body = "\n        ".join(_SENDS.strip().splitlines())
    daemon.drop("sends_agent.py", agent_source("Sends", body, properties=_TEXT))
    daemon.drop("aaa_agent.py", agent_source("Aaa", 'return "fine"'))
    services = Path(daemon.home, "brainstem", "services")
    services.mkdir(parents=True)
    handle = "\n    ".join(["def handle(method, path, body):", "kwargs = body", *_SENDS.strip().splitlines()])
    (services / "sends_service.py").write_text(handle + "\n")
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.mark.parametrize("frame", _FRAMES.values(), ids=_FRAMES)
def test_wrong_frame_is_the_calls_failure(daemon: RunningDaemon, frame: str) -> None:
    answer = daemon.post("/agents/run", {"agent": "Sends", "args": {"frame": frame}}, control=True)
    assert answer.status == 200, answer.body
    ran = answer.json()
    assert not ran["ok"]
    assert ran["seconds"] < 50, "it was noticed at once, not by the clock"
    assert daemon.chat("go")["agent_logs"] == "[Aaa] fine"
    assert "Unhandled exception" not in daemon.log


@pytest.mark.parametrize("reply", _REPLIES.values(), ids=_REPLIES)
def test_wrong_reply_of_a_service_is_a_bad_gateway(daemon: RunningDaemon, reply: str) -> None:
    answer = daemon.post("/api/sends", {"frame": f"[0,ID,{reply}]"})
    assert (answer.status, answer.json()["code"]) == (502, "wrong_answer")
    assert "set-cookie" not in answer.headers


def test_right_frame_is_taken(daemon: RunningDaemon) -> None:
    """The probe works."""
    frame = '[0, ID, {"result": "mine", "data_slush": {"a": [1]}, "more": null}]'
    answer = daemon.post("/agents/run", {"agent": "Sends", "args": {"frame": frame}}, control=True)
    assert (answer.json()["ok"], answer.json()["result"]) == (True, "mine")
    reply = daemon.post("/api/sends", {"frame": '[0,ID,{"status":202,"headers":{"X-A":"b"},"body":"aGk="}]'})
    assert (reply.status, reply.headers["x-a"], reply.body) == (202, "b", b"hi")
