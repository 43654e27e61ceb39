from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from agents.brainstem.answer_slots import PLAIN, TWIN, VOICE, Delimiters, MainStream, Slot

TEXT = st.text(alphabet=st.sampled_from("ab |VOICETN\n<>/"), max_size=60)
NAMES = st.text(alphabet=st.sampled_from("abVOICETWN_.-"), min_size=1, max_size=6)


def slot(name: str, number: int = 0) -> Slot:
    return Slot(name, f"|||{name}|||", f"key_{number}", tag=name if name.isalpha() else "")


@st.composite
def senses(draw: st.DrawFn) -> list[Slot]:
    names = draw(st.lists(NAMES.filter(lambda name: name not in ("VOICE", "TWIN")), max_size=4, unique=True))
    return [slot(name, number) for number, name in enumerate(names)]


@st.composite
def texts(draw: st.DrawFn) -> tuple[list[Slot], str]:
    """Senses, and a text full of their delimiters and of what nearly is one."""
    found = draw(senses())
    marks = [VOICE, TWIN, *(one.delimiter for one in found)]
    pieces = st.sampled_from([*marks, *(mark[:-1] for mark in marks), "|||", "|"])
    return found, "".join(draw(st.lists(TEXT | pieces, max_size=9)))


@given(texts())
def test_no_delimiter_is_ever_leaked(given_: tuple[list[Slot], str]) -> None:
    found, text = given_
    main, voice, twin, more = Delimiters(found).split(text)
    assert list(more) == [one.response_key for one in found], "every sense has its key, filled or not"
    for part in (main, voice, twin, *more.values()):
        for mark in (VOICE, TWIN, *(one.delimiter for one in found)):
            assert mark not in part


@given(texts())
def test_nothing_of_an_answer_is_lost(given_: tuple[list[Slot], str]) -> None:
    found, text = given_
    main, voice, twin, more = Delimiters(found).split(text)
    text = re.sub(
        "|".join(re.escape(mark) for mark in (VOICE, TWIN, *(one.delimiter for one in found))), " ", text
    )
    kept = "".join((main, voice, twin, *more.values()))
    tags = ["main", "voice", "twin", *(one.tag for one in found if one.tag)]
    for tag in tags:
        text, kept = (one.replace(f"<{tag}>", "").replace(f"</{tag}>", "") for one in (text, kept))
    assert sorted(kept.replace(" ", "").replace("\n", "")) == sorted(text.replace(" ", "").replace("\n", ""))


@given(senses(), st.data())
def test_slots_are_found_in_any_order(found: list[Slot], data: st.DataObject) -> None:
    plain = st.text(alphabet=st.sampled_from("ab \nVOICE<>"), max_size=20).map(str.strip)
    every = [slot("VOICE"), slot("TWIN"), *found]
    filled = {one.delimiter: data.draw(plain) for one in data.draw(st.permutations(every))}
    main = data.draw(plain)
    assume(not any("<" in body for body in (main, *filled.values())))
    text = main + "".join(mark + body for mark, body in filled.items())
    assert Delimiters(found).split(text) == (
        main,
        filled[VOICE],
        filled[TWIN],
        {one.response_key: filled[one.delimiter] for one in found},
    )


@given(texts(), st.integers(1, 7))
def test_a_stream_shows_exactly_the_main_part(given_: tuple[list[Slot], str], step: int) -> None:
    found, text = given_
    stream = MainStream(Delimiters(found))
    shown = "".join(stream.feed(text[at : at + step]) for at in range(0, len(text), step)) + stream.finish()
    marks = (VOICE, TWIN, *(one.delimiter for one in found))
    cut = min((at for mark in marks if (at := text.find(mark)) >= 0), default=len(text))
    assert shown == text[:cut]


@given(texts())
def test_a_stream_holds_back_no_more_than_a_delimiter_could_be(given_: tuple[list[Slot], str]) -> None:
    found, text = given_
    delimiters = Delimiters(found)
    stream = MainStream(delimiters)
    shown = stream.feed(text)
    if delimiters.mark.search(text) is None:
        held = text[len(shown) :]
        assert held == "" or any(one.startswith(held) for one in (VOICE, TWIN, *(s.delimiter for s in found)))


def test_plain_text_is_all_main() -> None:
    assert PLAIN.split(" Hello | world ||| ") == ("Hello | world |||", "", "", {})
    assert PLAIN.split("|||MOOD||| glad") == ("|||MOOD||| glad", "", "", {}), "no sense has this delimiter"


def test_a_whole_slot_in_its_tag_is_unwrapped_and_others_are_not() -> None:
    text = f"<main>Hi</main>{VOICE}<voice>hi</voice>{TWIN}see <twin>x</twin>|||mood|||<mood>glad</mood>"
    assert Delimiters([slot("mood")]).split(text) == ("Hi", "hi", "see <twin>x</twin>", {"key_0": "glad"})


def test_a_repeated_slot_is_joined() -> None:
    text = f"a{VOICE}one|||mood|||x{TWIN}t{VOICE}two|||mood|||y"
    assert Delimiters([slot("mood")]).split(text) == ("a", "one\ntwo", "t", {"key_0": "x\ny"})
