"""Synonyms of the words that agents are described by."""

from __future__ import annotations

import re

from agents.providers.offline.tokens import Word, stem

_STRENGTH = 0.75  # of the first related word; each further one counts a little less
_FADING = 0.92

# said: what an agent for it is likely called or described with, likeliest first
_SAID = """
rain raining rainy: weather forecast
umbrella sunny sun cloudy snow snowing windy storm: weather forecast
warm cold hot: temperature thermometer
degrees: temperature thermometer weather
celsius fahrenheit kelvin: unit convert temperature
km kilometers kilometres miles meters metres feet foot inches cm yards: unit convert length distance
kg kilograms pounds lbs ounces grams: unit convert mass weight
liters litres gallons ml: unit convert volume
conversion exchange: convert
usd eur gbp jpy chf cad aud dollar euro yen francs money: currency convert exchange
calc compute multiply divide plus minus percent: calculator math expression evaluate
equation arithmetic maths: math calculator expression
remember memorize remind: memory store reminder
save: memory store note
forget: memory delete
recall remembered recollect: memory recall context
mail: email
letter message: email mail
email: mail
compose write: draft
todos chore chores task tasks shopping groceries: todo task
appointment meeting event events schedule: calendar schedule meeting
agenda diary: calendar
countdown alarm: timer
clock: time clock
temperature: thermometer weather
price cost worth quote shares: price stock
ticker stocks share: stock
joke funny laugh humor humour pun: joke
cook cooking dinner meal eat lunch dish bake: recipe cook
song songs listen album artist playlist band: music play
lamp lamps bulb: light
space storage: disk
drive: disk
definition: dictionary wikipedia
wiki encyclopedia article: wikipedia
cpu ram uptime load: system
computer machine server os: system machine
running: process
website webpage page site link: url web page fetch
download scrape: fetch web
picture photo: image
bill billing: invoice
ship release rollout rollback: deploy
ticket card cards: kanban card issue
client customer lead prospect: customer crm account
mood tone feeling: sentiment
tldr shorten condense: summary summarize
summary sum: summarize
say: translate
parcel package shipment delivery: parcel package tracking
plane flight flights: flight
headlines press: news headlines
guid guids: uuid
uuids: uuid
reachable alive: ping host
passphrase: password
random: generate
coin flip: coin random
throw toss: roll dice
die d20 d6: dice
quiz trivia: question quiz
barcode: code
mute louder volume quieter: volume music
reminder: remind reminder calendar
bug bugs lint: review code
repo repository commit commits: git
tweet post: post social
spell grammar: spelling grammar
"""

# two or three words that together point somewhere
_PHRASES = {
    ("what", "time"): "clock time",
    ("what", "date"): "date clock",
    ("what", "day"): "date clock",
    ("will", "it"): "forecast",
    ("look", "up"): "lookup",
    ("how", "warm"): "temperature thermometer",
    ("how", "hot"): "temperature thermometer",
    ("how", "cold"): "temperature thermometer",
    ("dont", "forget"): "remember memory store",
    ("keep", "mind"): "remember memory store",
    ("remember", "this"): "save store",
    ("remember", "that"): "save store",
    ("remember", "to"): "save store",
    ("remember", "my"): "save store",
    ("remember", "i"): "save store",
    ("you", "remember"): "recall context",
    ("create", "agent"): "learnnew",
    ("make", "agent"): "learnnew",
    ("build", "agent"): "learnnew",
    ("new", "agent"): "learnnew",
    ("to", "do"): "todo",
    ("turn", "on"): "switch",
    ("turn", "off"): "switch",
}


def related(word: Word) -> tuple[tuple[str, float], ...]:
    """Stems an agent may use where a person says ``word``, each with a strength below 1."""
    return (
        _RELATED.get(word.text) or _RELATED.get(word.stem) or (_DICE if _THROW.fullmatch(word.text) else ())
    )


def phrase(first: Word, second: Word) -> tuple[tuple[str, float], ...]:
    """Like ``related``, for two neighbouring words."""
    return _BY_PHRASE.get((first.text, second.text), ())


def _faded(meant: str) -> tuple[tuple[str, float], ...]:
    return tuple((stem(word), _STRENGTH * _FADING**place) for place, word in enumerate(meant.split()))


def _table() -> dict[str, tuple[tuple[str, float], ...]]:
    table: dict[str, tuple[tuple[str, float], ...]] = {}
    for line in _SAID.strip().splitlines():
        said, _, meant = line.partition(":")
        for word in said.split():
            for key in (word, stem(word)):
                known = table.get(key, ())
                table[key] = known + tuple(pair for pair in _faded(meant) if pair not in known)
    return table


_RELATED = _table()
_THROW = re.compile(r"\d{0,3}d\d{1,3}")
_DICE = ((stem("dice"), 1.0),)
_BY_PHRASE = {pair: _faded(meant) for pair, meant in _PHRASES.items()}
