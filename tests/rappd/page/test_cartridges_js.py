"""Cartridges in the page's own code, in Chromium: the files that Python would write, byte for byte, and no others read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from twins.cartridges import json_documents, lispy_file, lispy_runner
from twins.cartridges.cartridge_io import loaded
from twins.errors import BadCartridgeError

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DATA = Path(__file__).parents[2] / "agents" / "runtimes" / "lispy"
PROGRAMS: list[dict[str, Any]] = json.loads((DATA / "programs.json").read_text())
NOW = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)
INPUTS = [1.5, {"who": ["Ada", None, True, -7]}]

_RUN = """async (asked) => {
  const { parse, written } = await import("/web/lib/cartridges/json.js");
  const { Frame } = await import("/web/lib/cartridges/frame.js");
  const { checked } = await import("/web/lib/cartridges/file.js");
  const octets = (text) => new TextEncoder().encode(text);
  return asked.map(({ file, steps, inputs, slice }) => {
    const given = parse(octets(`{"inputs": ${inputs ?? "[]"}}`), "inputs").get("inputs");
    const frame = new Frame(checked(parse(octets(file), "it"), "it"), { inputs: given });
    let left = steps ?? Infinity;
    while (frame.outcome.status === "paused" && left > 0) {
      const before = frame.outcome.usage.steps;
      if (frame.run(Math.min(left, slice)).status === "waiting") break;
      left -= frame.outcome.usage.steps - before;
    }
    const { status, stdout } = frame.outcome;
    const saved = status === "failed" ? null : written(frame.saved(new Date("2026-11-21T09:40:00Z")));
    return { status, stdout, saved, notes: frame.notes };
  });
}"""

_READ = """async (files) => {
  const { parse, written } = await import("/web/lib/cartridges/json.js");
  const { checked } = await import("/web/lib/cartridges/file.js");
  return files.map((octets) => {
    try {
      return { text: written(checked(parse(new Uint8Array(octets), "it"), "it")) };
    } catch (found) {
      if (found.code !== "bad_cartridge") throw found;
      return { refused: found.message };
    }
  });
}"""


async def in_the_page(site: Any, code: str, asked: Any) -> list[dict[str, Any]]:
    async with site.opened() as page:
        found: list[dict[str, Any]] = await page.evaluate(code, asked)
        return found


def cartridge(program: dict[str, Any]) -> dict[str, Any]:
    document = lispy_file.new(program["name"], {"main": program["source"]}, description="Zoë's")
    document["dialect"] = program.get("profile", "core")
    document["kept by nobody"] = [
        1.0,
        1e16,
        1e-6,
        0.00001,
        -0.0,
        1.5e-7,
        5e-324,
        2**64 - 1,
        -(2**63),
        "\x7f€😀",
    ]
    return document


def frozen(document: dict[str, Any], steps: int) -> dict[str, Any]:
    return lispy_runner.run(document, steps=steps, inputs=INPUTS, now=NOW).document


STATUS = {"done": "done", "error": "failed", "frozen": "paused", "waiting": "waiting"}


async def test_cartridge_file_equals_pythons(site: Any) -> None:
    asked, wanted = [], []
    for program in PROGRAMS:
        fresh = cartridge(program)
        for document, steps, inputs in (
            (fresh, None, INPUTS),
            (fresh, 23, []),
            (frozen(fresh, 23), 4, []),
            (frozen(fresh, 23), None, [3]),
        ):
            ran = lispy_runner.run(document, steps=steps, inputs=inputs, now=NOW)
            file = json_documents.encode(document).decode()
            asked.append({"file": file, "steps": steps, "inputs": json.dumps(inputs), "slice": 7})
            wanted.append((program["name"], ran))
    answers = await in_the_page(site, _RUN, asked)
    for (name, ran), answer in zip(wanted, answers, strict=True):
        assert answer["status"] == STATUS[ran.status], name
        assert answer["notes"] == ran.notes, name
        if ran.status == "error":
            assert answer["saved"] is None, name
        else:
            assert answer["saved"] == json_documents.encode(ran.document).decode(), name


async def test_frame_after_frame_it_knows_what_it_knew(site: Any) -> None:
    source = (
        '(define (twice x) (* 2 x)) (define seen (if (null? prev-result) \'(1.0 "a") (cons echo-frame seen)))'
        " (define (run who) (println who prior-echo) seen)"
    )
    document = lispy_file.new("rose", {"main": source})
    for number in range(7):
        inputs = [f"guest {number}"] if number % 2 else []
        asked = {"file": json_documents.encode(document).decode(), "inputs": json.dumps(inputs), "slice": 50}
        (answer,) = await in_the_page(site, _RUN, [asked])
        ran = lispy_runner.run(document, inputs=inputs, now=NOW)
        assert answer["saved"] == json_documents.encode(ran.document).decode(), number
        document = json_documents.parse(answer["saved"].encode())
        assert document["continuation"]["frame"] == number + 1


async def test_what_was_changed_by_hand_counts_and_is_told(site: Any) -> None:
    document = lispy_runner.run(lispy_file.new("rose", {"main": "(define n 1) n"}), now=NOW).document
    document["env"]["n"] = 1.0
    document["programs"]["main"] = "n"
    (answer,) = await in_the_page(
        site, _RUN, [{"file": json_documents.encode(document).decode(), "slice": 9}]
    )
    assert answer["notes"] == ["n was changed by hand."]
    assert json.loads(answer["saved"])["echoes"][-1]["result"] == "1.0"


META = b'"_meta": {"type": "lispy-cartridge"}'
HOSTILE = [
    b"",
    b"[]",
    b'{"_meta": {}}',
    b"{" + META,
    b"{" + META + b"} x",
    b"{" + META + b', "a": 1, "a": 2}',
    b"{" + META + b', "a": NaN}',
    b"{" + META + b', "a": -Infinity}',
    b"{" + META + b', "a": 1e999}',
    b"{" + META + b', "a": 18446744073709551616}',
    b"{" + META + b', "a": 01}',
    b"{" + META + b', "a": 1.}',
    b"{" + META + b', "a": "\\ud800"}',
    b"{" + META + b', "a": "\t"}',
    b"{" + META + b', "a": "\xff"}',
    b"{" + META + b', "a": "\\x"}',
    b"{" + META + b", 'a': 1}",
    b"{" + META + b', "a": ' + b"[" * 100 + b"]" * 100 + b"}",
    b"{" + META + b",}",
    b'{"_meta": {"type": "lispy-cartridge", "version": 1.0}}',
    b'{"_meta": {"type": "lispy-cartridge", "agent_id": 3}}',
    b"{" + META + b', "programs": {"main": 1}}',
    b"{" + META + b', "entry": "main"}',
    b"{" + META + b', "dialect": "scheme"}',
    b"{" + META + b', "continuation": {"frame": -1}}',
    b"{" + META + b', "continuation": {"frame": true}}',
]
GOOD = [
    b"\xef\xbb\xbf{" + META + b"}",
    b"{" + META + b', "a": [18446744073709551615, -9223372036854775808, -0, 1E2, 0.1e-3, -0.0]}',
    b"{" + META + b', "1": 1, "0": 0, "__proto__": {"x": []}, "a": "\\u00e9\\/\\b\\ud83d\\ude00"}',
    b"{" + META + b', "a": ' + b"[" * 99 + b"]" * 99 + b"}",
    b" \r\n{" + META + b', "continuation": {"frame": 3, "image": null}, "soul": null}\n',
]


async def test_refused_like_python_and_read_like_python(site: Any) -> None:
    answers = await in_the_page(site, _READ, [list(file) for file in HOSTILE + GOOD])
    for file, answer in zip(HOSTILE, answers, strict=False):
        with pytest.raises(BadCartridgeError):
            document = loaded(file, name="it").document
            lispy_file.checked(document)
        assert "it " in answer["refused"], file
    for file, answer in zip(GOOD, answers[len(HOSTILE) :], strict=True):
        assert answer["text"] == json_documents.encode(loaded(file, name="it").document).decode(), file


async def test_numbers_are_written_as_python_writes_them(site: Any) -> None:
    exponents = [*range(-330, 310, 7), *range(-9, 25)]
    numbers = [
        float(f"{digits}e{exponent}") for digits in ("1", "-1.25", "7.123456789") for exponent in exponents
    ]
    file = orjson.dumps({"_meta": {"type": "lispy-cartridge"}, "a": numbers})
    (answer,) = await in_the_page(site, _READ, [list(file)])
    assert answer["text"].encode() == json_documents.encode(json_documents.parse(file))
