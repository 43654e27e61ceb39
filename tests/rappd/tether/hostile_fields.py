"""Fields in place of a session description by which a stranger wants two readers to see two certificates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PHONE = ":".join(["AB"] * 32)
GOOD: dict[str, Any] = {
    "ufrag": "aB+/",
    "pwd": "p" * 22,
    "setup": "active",
    "fingerprint": PHONE,
    "candidates": [{"address": "192.168.1.20", "port": 50001, "priority": 2113937151}],
}
BREAKS = [
    "\r\n",
    "\n",
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
    "\0",
    " ",
    "\t",
]
"""All that some reader takes for the end of a line, and blanks."""
TEXTS = ("ufrag", "pwd", "setup", "fingerprint")


def lines_of(thief: str) -> list[str]:
    """Lines of a description that give it another certificate, each with the way in which it hid."""
    return [
        f"a=fingerprint:sha-256 {thief}", f"a=fingerprint:sha-256  {thief}", f"a=fingerprint:SHA-256\t{thief}",
        f"a=fingerprint:sha-384 {thief}:{thief[:47]}", f"a=fingerprint:sha-512 {thief}:{thief}",
        f"s=a=fingerprint:sha-256 {thief}", f"i=a=fingerprint:sha-256 {thief}", f"b=a=fingerprint:sha-256 {thief}",
        f"o=a=fingerprint:sha-256 {thief}", f"a=x:a=fingerprint:sha-256 {thief}",
        f"m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=fingerprint:sha-256 {thief}",
    ]  # fmt: skip


def with_line(good: dict[str, Any], thief: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """``good`` with such a line in each of its texts, after each kind of break."""
    for at, line in enumerate(lines_of(thief)):
        for text in TEXTS:
            yield f"{text} line {at}", {**good, text: f"{good[text]}\r\n{line}"}
        yield f"address line {at}", placed(good, address=f"192.168.1.20\r\n{line}")
        yield f"zone line {at}", placed(good, address=f"fe80::1%\r\n{line}")
        yield f"name line {at}", placed(good, address=f"x.local\r\n{line}")
    line = lines_of(thief)[0]
    for sign in BREAKS:
        for text in TEXTS:
            yield f"{text} {sign!r} line", {**good, text: f"{good[text]}{sign}{line}"}
            yield f"{text} ends with {sign!r}", {**good, text: good[text] + sign}
        yield f"address {sign!r}", placed(good, address=f"192.168.1.20{sign}{line}")


def placed(good: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """``good`` with another first candidate."""
    first, *rest = good["candidates"]
    return {**good, "candidates": [{**first, **fields}, *rest]}


def hostile(good: dict[str, Any] = GOOD, thief: str = ":".join(["CD"] * 32)) -> dict[str, Any]:
    """Every form by its name."""
    found: dict[str, Any] = dict(with_line(good, thief))
    for name in good:
        found[f"no {name}"] = {key: value for key, value in good.items() if key != name}
        for value in (None, 5, True, [], {}, [good[name]], [good[name], good[name]]):
            found[f"{name} is {str(value)[:40]!r}"] = {**good, name: value}
        del found[f"{name} is {str([])[:40]!r}"]  # no candidates are good ones
    for value in (
        "", thief[:-1], thief + ":00", thief.replace(":", ""), thief.replace(":", " "), f"sha-256 {thief}",
        f"{thief} {thief}", f"{thief}:{thief}", thief.replace("C", "\uff23"), thief.replace("CD", "\u0661\u0662"),
        thief.replace("C", "\u0441"), f" {thief}", thief[:-2] + "GG",
    ):  # fmt: skip
        found[f"fingerprint {value[:12]!r} of {len(value)}"] = {**good, "fingerprint": value}
    for value in ("abc", "a" * 257, "a b c", "äöüß", "ab\u0661\u0662", "a=b=c"):
        found[f"ufrag {value[:12]!r}"] = {**good, "ufrag": value}
    for value in ("p" * 21, "p" * 257, "p" * 21 + "\u212a"):
        found[f"pwd of {len(value)}, {value[-1]!r}"] = {**good, "pwd": value}
    for value in ("ACTIVE", "holdconn", "auto", ""):
        found[f"setup {value!r}"] = {**good, "setup": value}
    for key in ("fingerprints", "sdp", "certificate", "mid", "__proto__"):
        found[f"also {key}"] = {**good, key: thief}
        found[f"candidate with {key}"] = placed(good, **{key: thief})
    for name, values in {
        "port": (0, -1, 65536, "50001", 1.5, True, None, [50001]),
        "priority": (0, -1, 1 << 31, 10**30, "1", 0.5, False, None),
        "address": ("", None, 5, ["192.168.1.20"], "x" * 64 + ".example", "192.168.1.20/24", "fe80::1%eth0", "1.2.3.4 9 typ host"),
    }.items():  # fmt: skip
        for number, value in enumerate(values):
            found[f"{name} {number}"] = placed(good, **{name: value})
        found[f"candidate without {name}"] = {
            **good, "candidates": [{key: value for key, value in good["candidates"][0].items() if key != name}],
        }  # fmt: skip
    found["33 candidates"] = {**good, "candidates": good["candidates"] * 33}
    found["candidate as text"] = {**good, "candidates": ["candidate:1 1 udp 1 192.168.1.20 9 typ host"]}
    return found
