"""Schemas of a listener on the disk, and the namespaces that it has by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from envelopes.payloads.form import Field, PayloadForm, Type
from rappd.organism.schemas import ListenerSchemas

ONE, OTHER, THIRD = (
    PayloadForm("double", "sums", "double", "Doubles.", (Field(name, Type("int")),))
    for name in ("number", "value", "amount")
)


@pytest.mark.parametrize(
    ("kept", "served"),
    [
        ([], {1}),
        ([ONE], {1}),
        ([ONE, OTHER], {1, 2}),
        ([ONE, OTHER, ONE], {1, 2}),
        ([ONE, OTHER, THIRD], {1, 2, 3}),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_listener_has_the_namespaces_of_the_versions_there_are(
    tmp_path: Path, kept: list[PayloadForm], served: set[int], restarted: bool
) -> None:
    schemas = ListenerSchemas(tmp_path)
    for form in kept:
        schemas.keep([form])
    if restarted:
        schemas = ListenerSchemas(tmp_path)
        schemas.keep(kept[-1:])
    current = kept[-1] if kept else ONE
    found = {
        version
        for version in range(10)
        if current.serves(current.namespace(version), "double", schemas.newest(current))
    }
    assert found == served
    assert current.serves("", "double") and not current.serves("", "triple")
