"""Reading ``__manifest__`` out of an agent file without running it (RAPP v1 §12.2)."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from agents.contract.syntax import syntax_tree

REQUIRED = ("schema", "name", "version", "display_name", "description", "author", "tags", "category")
CATEGORIES = (
    *("core", "devtools", "pipeline", "integrations", "productivity", "general", "federal_government"),
    *("slg_government", "it_management", "manufacturing", "energy", "retail_cpg", "healthcare"),
    *("human_resources", "financial_services", "b2b_sales", "b2c_sales", "professional_services"),
    *("software_digital_products", "analysis", "creative", "meta", "platform", "workflow"),
)
LONGEST_SUMMARY = 100
TIERS = ("experimental", "community", "verified", "official", "frontier")


def find_manifest(source: str | bytes | ast.AST) -> dict[str, Any] | None:
    """The first plain assignment to ``__manifest__``, taken literally; None without one."""
    if not isinstance(source, ast.AST):
        try:
            source = syntax_tree(source)
        except (SyntaxError, ValueError, RecursionError):
            return None
    for node in ast.walk(source):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__manifest__" for target in node.targets
        ):
            try:
                found = ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, RecursionError):
                return None
            return found if isinstance(found, dict) else None
    return None


def essentials(manifest: Any) -> dict[str, Any]:
    """The fields of a manifest that are shown, as far as sound: ``name, display_name, version, author, tags, summary``.

    ``summary`` is a line for people, beside the description for models.
    """
    if not isinstance(manifest, dict):
        return {}
    found: dict[str, Any] = {
        key: manifest[key]
        for key in ("name", "display_name", "version", "author")
        if isinstance(manifest.get(key), str)
    }
    summary = manifest.get("summary")
    if isinstance(summary, str) and summary.strip():
        found["summary"] = " ".join(summary.split())[:LONGEST_SUMMARY]
    tags = manifest.get("tags")
    if isinstance(tags, list):
        found["tags"] = [tag for tag in tags if isinstance(tag, str)]
    return found


def missing_fields(manifest: dict[str, Any]) -> list[str]:
    """Fields that a registry wants and ``manifest`` lacks."""
    return [key for key in REQUIRED if key not in manifest]


def faults(manifest: dict[str, Any]) -> list[str]:
    """Objections that a registry would have to the fields that are there."""
    return list(_faults(manifest))


def _faults(manifest: dict[str, Any]) -> Iterable[str]:
    name = manifest.get("name", "@a/b")
    if not isinstance(name, str) or not name.startswith("@") or "/" not in name:
        yield f"name {name!r} is not of the form @publisher/slug"
    version = manifest.get("version", "1.0.0")
    parts = version.split(".") if isinstance(version, str) else []
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        yield f"version {version!r} is not three numbers"
    if not isinstance(manifest.get("tags", []), list):
        yield "tags is not a list"
    category = manifest.get("category")
    if category and category not in CATEGORIES:
        yield f"category {category!r} is not one of the {len(CATEGORIES)}"
    tier = manifest.get("quality_tier", "community")
    if tier not in TIERS:
        yield f"quality_tier {tier!r} is not one of {', '.join(TIERS)}"
