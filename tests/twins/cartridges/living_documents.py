"""Documents of the three ``.rappter.egg`` shapes as hypothesis draws them: published fields and any others."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from twins.cartridges import egg_spec
from twins.cartridges.field_specs import STAGES

Document = dict[str, Any]

texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = texts.filter(bool)
TELLING = {"_rappd", "_meta", "_format", "_schema_version", "_content_sha256", "schema", "kind"}
"""Keys that say what a document is: nobody else's."""
keys = texts.filter(lambda key: key not in TELLING)
moments = st.sampled_from(["2026-03-01T00:00:00Z", "2026-04-12T14:33:00.000Z", "soon"])
numbers = st.integers(-5, 2000) | st.floats(-10, 1e9, allow_nan=False)
counts = st.integers(0, 10**18)
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(keys, values, max_size=3)


def some(fields: dict[str, st.SearchStrategy[Any]], *required: str) -> st.SearchStrategy[Document]:
    """Objects with any of these fields, and keys that nobody published beside them."""
    known = st.fixed_dictionaries(
        {key: fields[key] for key in required},
        optional={key: field for key, field in fields.items() if key not in required},
    )
    strange = st.dictionaries(keys.filter(lambda key: key not in fields), values, max_size=2)
    return st.builds(lambda a, b: b | a, known, strange)


maybe = moments | st.none()
seed_memories = (
    some({"type": texts, "ts": maybe, "summary": texts})
    | some({"type": st.just("user-pref"), "key": texts, "value": values})
    | some({"type": st.just("context"), "ts": maybe, "summary": texts, "source": texts})
    | values
)
seeds = some(
    {
        "schema": st.just("rappter-egg/1.0"),
        "id": names,
        "name": names,
        "stage": st.sampled_from(STAGES),
        "stats": objects
        | some({"mood": numbers | texts, "energy": numbers, "xp": numbers, "posts_made": counts}),
        "skills": st.lists(texts, max_size=2),
        "personality": texts | st.just("curious, easily distracted, deeply loyal"),
        "memory": st.lists(seed_memories, max_size=4),
        "code": some({"lang": texts, "entry": texts, "agents_loaded": st.lists(texts, max_size=2)}),
        "continuation": some(
            {"frame": counts, "pending_inputs": st.lists(values, max_size=2), "last_state": values}
        ),
        "lineage": some(
            {
                "hatched_at": maybe,
                "hatched_in": texts,
                "evolutions": st.lists(some({"to_stage": texts, "at": maybe}) | values, max_size=3),
            }
        ),
    },
    "schema",
    "name",
    "stage",
)
buddy_memories = (
    some({"text": texts, "type": texts, "saved_at": maybe, "mood": numbers, "stage": st.sampled_from(STAGES)})
    | some({"text": texts, "at": maybe, "source": texts})
    | values
)
organisms = some(
    {
        "name": names,
        "stage": st.sampled_from(STAGES),
        "mood": numbers,
        "energy": numbers,
        "xp": numbers,
        "social": numbers,
        "frames_survived": counts,
        "posts_made": counts,
        "comments_made": counts,
        "hatched_at": maybe,
        "last_fed": maybe,
        "last_petted": maybe,
        "last_action": maybe,
        "personality": st.lists(texts | values, max_size=3),
        "memories": st.lists(
            some({"type": st.sampled_from(["hatch", "evolution"]), "to": texts, "at": maybe}) | values,
            max_size=3,
        ),
        "github_user": maybe,
        "created_at": maybe,
        "context_memory": st.lists(buddy_memories, max_size=3),
        "long_memory": st.lists(buddy_memories, max_size=3),
        "soul_notes": texts,
        "cartridge_xml": texts | values,
    }
)
buddies = some(
    {
        "_meta": some(
            {
                "type": st.just("rappter.egg"),
                "version": st.just(1),
                "format": texts,
                "exported_at": maybe,
                "description": texts,
            },
            "type",
        ),
        "organism": organisms,
    },
    "_meta",
    "organism",
)
states = organisms | some({"mood": texts, "name": values, "tick": counts})
bodies = (
    st.builds(lambda content: {"kind": "cartridge_xml", "content": content}, texts)
    | st.builds(lambda content: {"kind": "state_json", "content": content}, states)
    | st.builds(
        lambda content: {"kind": "hybrid", "content": content},
        some({"cartridge_xml": texts, "state_json": states | values})
        | some({"cartridge": texts, "state": states | values}),
    )
)


def _sealed(document: Document, body: Document, strange: Document) -> Document:
    egg = document | {"body": strange | body}
    egg_spec.seal(egg)
    return egg


specs = st.builds(
    _sealed,
    some(
        {
            "_format": st.just("egg"),
            "_schema_version": st.just(1),
            "organism": some(
                {
                    "slug": names,
                    "species": names,
                    "instance": names,
                    "scale": names,
                    "substrate": values,
                    "name": texts,
                }
            ),
            "lineage": some(
                {"created_at": maybe, "parent_egg_sha256": digests | st.none(), "birth_tick": values}
            ),
            "validation": some({"ok": st.booleans(), "issues": st.lists(values, max_size=2)}),
        },
        "_format",
        "_schema_version",
        "organism",
    ),
    bodies,
    st.dictionaries(st.sampled_from(["filename", "note"]), texts, max_size=2),
)
