from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.brainstem.slots import TWIN, VOICE, MainStream, split

TEXT = st.text(alphabet=st.sampled_from("ab |VOICETN\n<>/"), max_size=60)


@given(st.lists(TEXT | st.sampled_from([VOICE, TWIN]), max_size=8))
def test_no_delimiter_is_ever_leaked(parts: list[str]) -> None:
    for slot in split("".join(parts)):
        assert VOICE not in slot
        assert TWIN not in slot


@given(TEXT, TEXT, TEXT, st.booleans())
def test_slots_are_found_in_any_order(main: str, voice: str, twin: str, voice_first: bool) -> None:
    clean = [text for text in (main, voice, twin) if "|" not in text and "<" not in text]
    if len(clean) < 3:
        return
    tail = f"{VOICE}{voice}{TWIN}{twin}" if voice_first else f"{TWIN}{twin}{VOICE}{voice}"
    assert split(main + tail) == (main.strip(), voice.strip(), twin.strip())


def test_plain_text_is_all_main() -> None:
    assert split(" Hello | world ||| ") == ("Hello | world |||", "", "")


def test_a_whole_slot_in_its_tag_is_unwrapped_and_others_are_not() -> None:
    assert split(f"<main>Hi</main>{VOICE}<voice>hi</voice>{TWIN}see <twin>x</twin>") == (
        "Hi",
        "hi",
        "see <twin>x</twin>",
    )


def test_a_repeated_slot_is_joined() -> None:
    assert split(f"a{VOICE}one{TWIN}t{VOICE}two").voice == "one\ntwo"


@given(st.lists(TEXT | st.sampled_from([VOICE, TWIN]), max_size=6), st.integers(1, 7))
def test_a_stream_shows_exactly_the_main_part(parts: list[str], step: int) -> None:
    text = "".join(parts)
    stream = MainStream()
    shown = "".join(stream.feed(text[at : at + step]) for at in range(0, len(text), step)) + stream.finish()
    cut = min((at for mark in (VOICE, TWIN) if (at := text.find(mark)) >= 0), default=len(text))
    assert shown == text[:cut]
