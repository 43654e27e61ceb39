"""An input for the wire's readers: what they may do with any bytes at all. Used by the tests and by hand.

By hand, guided by coverage, as long as one likes (atheris is no dependency of the project):

    pip install atheris
    python tests/envelopes/fuzz/wire_target.py FOLDER -max_len=4096 -max_total_time=600

FOLDER keeps the inputs that reached something new; it may begin empty. It is run from the repository's
root. An input that breaks the promise is written to ``crash-…`` and shown.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from envelopes.codecs import emergence, wire
from envelopes.envelope import Envelope
from envelopes.errors import BadSignatureError, MalformedError
from envelopes.identity.signatures import verify

SENDER = "brainstem_0123456789abcdef"


def one_input(raw: bytes) -> None:
    """Raises whatever a reader raises that is not ``MalformedError``, and AssertionError for a loss."""
    try:
        envelope = wire.decode(raw)
    except MalformedError as problem:
        _answered(problem)
    else:
        _kept(envelope)
        assert emergence.decode(raw) == envelope, "the daemon must be able to read what the listener takes"
        with suppress(BadSignatureError):
            verify(envelope, 1_800_000_000)
    try:
        batch = wire.decode_batch(raw)
    except MalformedError as problem:
        _answered(problem)
    else:
        for each in batch:
            if isinstance(each, MalformedError):
                _answered(each)
            else:
                _kept(each)


def _kept(envelope: Envelope) -> None:
    assert wire.decode(wire.encode(envelope)) == envelope
    assert emergence.decode(emergence.encode(envelope)) == envelope


def _answered(problem: MalformedError) -> None:
    refusal = wire.refusal_of(problem, sender=SENDER)
    assert wire.decode(wire.encode(refusal)) == refusal
    assert wire.http_status(refusal) == 400


if __name__ == "__main__":
    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
