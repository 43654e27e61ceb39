"""Finds the stretch of a sentence that is an argument: after a telling preposition, or all that is left over."""

from __future__ import annotations

from agents.providers.offline.tool_index import Param, Profile
from agents.providers.offline.utterance import Found, Utterance, words
from agents.providers.offline.vocabulary import STOP, VAGUE, Word, compact, name_words, related, word_set

TAKES_REST = word_set("text slot place path glob host symbol expression")
"""Kinds that may take what is left of a sentence."""

_ONE_WORD = word_set("path glob host symbol")
_DETERMINERS = word_set("a an the my your our his her its their this that these those some any")
_PREPOSITIONS = word_set(
    "in at near for around from to into about on with of by over under as called named titled via using within "
    "regarding between since until before after"
)
_PLEASE = word_set("please pls plz thanks thank hey ok okay hi hello now quickly")
_PLEASE_AFTER = word_set("please pls plz thanks now")
_VERBS = word_set(
    "take make create do put write find look show set run start send generate use open check search give fetch get "
    "list mark see read print draft say says know tells run turn switch play call build new quick quickly add look "
    "lookup"
)
_LINKS = word_set(
    "that to about for of on with in from as is are named called saying up out down at by into me us over"
)
_LINKING_VERBS = word_set("says say know knows tell tells")
_TIME_WORDS = word_set(
    "today tomorrow tonight yesterday now right currently later soon morning afternoon evening night noon midnight "
    "monday tuesday wednesday thursday friday saturday sunday week weekend month year day days hour hours minute "
    "minutes second seconds next last this moment future past general celsius fahrenheit detail advance"
)
_PLACES = ("in", "at", "near", "for", "around", "of")
_ROLES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (word_set("room area zone"), ("in",)),
    (
        word_set("customer client recipient to person who contact assignee company account patient guest"),
        ("for", "to", "with", "of"),
    ),
    (word_set("artist author composer"), ("by", "from")),
    (word_set("app application project repository repo board channel"), ("in", "of", "for", "on")),
    (word_set("label purpose reason"), ("for", "called", "named")),
)
_LONGEST_SLOT = 8
_LONGEST_AFTER_PREPOSITION = 5
_FARTHEST_TRIGGER = 8
_SHORT = 4  # words of a message in which a bare word may be a host, a file or a symbol


def after_preposition(
    param: Param, utterance: Utterance, profile: Profile, used: list[Found]
) -> Found | None:
    """The words after the preposition (or the name) that leads to values such as ``param``'s."""
    leading = _leading(param)
    own = frozenset(name_words(param.name)) if param.kind in ("slot", "place") else frozenset()
    own -= word_set("name title text number item label")
    if not leading and not own:
        return None
    tokens = _Tokens(utterance, profile, used)
    for place, token in enumerate(tokens.all[:60]):
        folded = token.value.casefold()
        if tokens.is_taken(place) or not (
            folded in leading or (folded in own and not tokens.is_trigger_name(place))
        ):
            continue
        found = _captured(tokens, place + 1)
        if found is None or (
            folded in own and folded not in leading and found.value.islower() and " " in found.value
        ):
            continue
        return found
    return None


def listed(param: Param, utterance: Utterance, profile: Profile, used: list[Found]) -> Found | None:
    """The part that enumerates things: after the parameter's name, or for a required one after "with"."""
    tokens = _Tokens(utterance, profile, used)
    own = {spelled for word in name_words(param.name) for spelled in (word, word.removesuffix("s"))}
    leading = ("with", "from", "of", "using", "for", "containing") if param.required else ()
    for place, token in enumerate(tokens.all[:60]):
        folded = token.value.casefold()
        if folded not in leading and not (folded in own and not tokens.is_trigger_name(place)):
            continue
        last = place + 1
        while (
            last < len(tokens.all) and not tokens.is_taken(last) and not tokens.ends_clause(last - 1, ".?!")
        ):
            last += 1
        found = tokens.between(place + 1, last)
        if found is not None and any(word.text not in VAGUE for word in words(found.value)):
            return found
    return None


def remainder(param: Param, utterance: Utterance, profile: Profile, used: list[Found]) -> Found | None:
    """The rest when the words that chose the agent, the values taken and the polite words are gone."""
    tokens = _Tokens(utterance, profile, used)
    after_colon = _after_colon(utterance, tokens) if param.kind in ("text", "slot", "array") else None
    if after_colon is not None:
        return after_colon
    if not param.required and tokens.first_trigger() is None:
        return None
    first, last = tokens.trimmed(loosely=param.kind != "text")
    if param.kind != "text":
        while first < last and tokens.folded(first) in _DETERMINERS:
            first += 1
        for place in range(first, last - 1):
            if tokens.ends_clause(place, "?!;." if param.kind == "array" else "?!;.,"):
                last = place + 1
                break
        while last > first and tokens.folded(last - 1) in _TIME_WORDS | _DETERMINERS | _PREPOSITIONS:
            last -= 1
    found = tokens.between(first, last)
    if found is None or not _means_something(found.value) or last - first == len(tokens.all):
        return None
    size = last - first
    if param.kind in _ONE_WORD and (size != 1 or len(tokens.all) > _SHORT):
        return None
    if param.kind == "symbol" and not (found.value.isalnum() and len(found.value) <= 5):
        return None
    if param.kind in ("slot", "expression") and size > _LONGEST_SLOT:
        return None
    if param.kind == "place" and not _like_a_place(found.value, size, tokens):
        return None
    return found


class _Tokens:
    """The tokens of one utterance as one agent sees them: which were used, which are its own words."""

    def __init__(self, utterance: Utterance, profile: Profile, used: list[Found]) -> None:
        self.utterance = utterance
        self.profile = profile
        self.used = used
        self.all = utterance.tokens

    def folded(self, place: int) -> str:
        return str(self.all[place].value).casefold().replace("’", "'").removesuffix("'s").replace("'", "")

    def is_taken(self, place: int) -> bool:
        return Utterance.inside(self.all[place], self.used)

    def is_trigger(self, place: int) -> bool:
        """True when the token is a word of the agent's name or first sentence, or stands for one."""
        return self._is_name(place) or any(
            self._points(word, self.profile.lead) for word in self._words(place)
        )

    def is_trigger_name(self, place: int) -> bool:
        return self._is_name(place) or any(
            self._points(word, frozenset(self.profile.name_stems)) for word in self._words(place)
        )

    def ends_clause(self, place: int, marks: str) -> bool:
        end = self.all[place].end
        after = self.utterance.text[end : end + 2]
        return bool(after) and after[0] in marks and (len(after) == 1 or after[1].isspace())

    def between(self, first: int, last: int) -> Found | None:
        if first >= last:
            return None
        start, end = self.all[first].start, self.all[last - 1].end
        text = self.utterance.text
        while end < len(text) and text[end] in ")]}\"'`" and text[start:end].count(_OPENING[text[end]]) % 2:
            end += 1
        if start and text[start - 1] in "([{" and end < len(text) and text[end] in ")]}":
            start, end = start - 1, end + 1
        whole_text = last == len(self.all) and last - first > 3
        if whole_text and end < len(text) and text[end] in ".!":
            end += 1
        return Found(text[start:end], start, end)

    def trimmed(self, *, loosely: bool) -> tuple[int, int]:
        """First and last (exclusive) token of what is left; ``loosely`` drops the agent's words at the end too."""
        first, last = 0, len(self.all)
        trigger = self.first_trigger()
        if trigger is not None:
            first = self._after_triggers(trigger + 1, loosely)
        if trigger is None:
            idle = _PLEASE | STOP | _VERBS if loosely else _PLEASE
        else:
            idle = STOP - _PLEASE if loosely else frozenset()
        while first < last and self.folded(first) in idle:
            first += 1
        while last > first:
            before = last
            while last > first and (self.folded(last - 1) in _PLEASE_AFTER or self.is_taken(last - 1)):
                last -= 1
            last = self._without_last_phrase(first, last)
            if loosely and last > first and self.is_trigger_name(last - 1):
                last -= 1
            if before == last:
                break
        return first, last

    def first_trigger(self) -> int | None:
        for place in range(min(len(self.all), _FARTHEST_TRIGGER)):
            if self.is_trigger(place) or self.is_taken(place):
                return place
            if self.folded(place) not in STOP | _VERBS | _PLEASE:
                return None
        return None

    def _after_triggers(self, place: int, loosely: bool) -> int:
        """Past further words of the agent, values taken, and the little words that link them to the rest."""
        links = _LINKS | _LINKING_VERBS if loosely else _LINKS
        while place < len(self.all):
            if self.is_trigger(place) or self.is_taken(place) or self.folded(place) in links:
                place += 1
            elif (
                self.folded(place) in _DETERMINERS and place + 1 < len(self.all) and self._leads_on(place + 1)
            ):
                place += 2
            else:
                break
        return place

    def _leads_on(self, place: int) -> bool:
        return self.is_trigger(place) or self.is_taken(place)

    def _without_last_phrase(self, first: int, last: int) -> int:
        """Without ``on my todo list`` or ``to German`` at the end."""
        place = last - 1
        while place > first and (
            self.is_trigger_name(place) or self.is_taken(place) or self._is_own_word(place)
        ):
            place -= 1
        while place > first and self.folded(place) in _DETERMINERS:
            place -= 1
        if (
            place >= first
            and self.folded(place) in _PREPOSITIONS
            and (place < last - 1 or last < len(self.all))
        ):
            return place
        return last

    def _is_own_word(self, place: int) -> bool:
        return self.folded(place) in ("agent", "tool") or any(
            word.stem in param.stems for word in self._words(place) for param in self.profile.params
        )

    def _is_name(self, place: int) -> bool:
        return compact(self.all[place].value) == self.profile.compact

    def _words(self, place: int) -> list[Word]:
        return [word for word in words(self.all[place].value) if word.text not in STOP]

    @staticmethod
    def _points(word: Word, stems: frozenset[str]) -> bool:
        return word.stem in stems or any(term in stems for term, _ in related(word))


_OPENING = {")": "(", "]": "[", "}": "{", '"': '"', "'": "'", "`": "`"}


def _leading(param: Param) -> tuple[str, ...]:
    if param.kind == "text":
        return ("saying",)
    if param.kind == "timezone":
        return ("in",)
    if param.kind == "language":
        return ("into",) if param.direction != "from" else ()
    if param.direction:
        return ("from",) if param.direction == "from" else ("to", "into", "in")
    if param.kind == "place":
        return _PLACES
    if param.topical:
        return ("about", "on", "regarding", "for", "of")
    spelled = set(name_words(param.name))
    for names, prepositions in _ROLES:
        if spelled & names:
            return prepositions
    return ("called", "named", "titled") if param.named else ()


def _captured(tokens: _Tokens, place: int) -> Found | None:
    while place < len(tokens.all) and tokens.folded(place) in _DETERMINERS:
        place += 1
    last = place
    while last < len(tokens.all) and last - place < _LONGEST_AFTER_PREPOSITION:
        folded = tokens.folded(last)
        if (
            tokens.is_taken(last)
            or folded in _PREPOSITIONS | _TIME_WORDS | _PLEASE
            or folded in ("is", "are", "and")
        ):
            break
        if tokens.is_trigger_name(last):
            break
        last += 1
        if tokens.ends_clause(last - 1, ",;?!.:"):
            break
    found = tokens.between(place, last)
    return found if found is not None and _means_something(found.value) else None


def _after_colon(utterance: Utterance, tokens: _Tokens) -> Found | None:
    text, end = utterance.text, utterance.head_end
    if end >= len(text) or text[end] not in ":：\n" or len(utterance.text[:end].split()) > _FARTHEST_TRIGGER:
        return None
    head = [place for place, token in enumerate(tokens.all) if token.end <= end]
    if not any(tokens.is_trigger(place) for place in head):
        return None
    body = text[end + 1 :].strip()
    start = text.index(body, end) if body else end
    return Found(body, start, start + len(body)) if body and not body.isspace() else None


def _means_something(text: str) -> bool:
    return any(word.text not in VAGUE for word in words(text[:1_000])) or any(
        not letter.isascii() and letter.isalnum() for letter in text[:1_000]
    )


def _like_a_place(text: str, size: int, tokens: _Tokens) -> bool:
    if size > 4:
        return False
    return text[:1].isupper() or (size <= 2 and len(tokens.all) <= 4)
