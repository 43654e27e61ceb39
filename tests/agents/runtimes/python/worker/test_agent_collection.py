"""Every form of agent file that is out in the world loads, describes itself and runs, unmodified."""

from __future__ import annotations

from typing import Any

import pytest

from agents.runtimes.python.pools.errors import AgentRaisedError

NEED_A_CLOUD_SDK = {
    "needs_azure_agent.py": (3, "No module named 'azure'", "azure"),
    "needs_msal_agent.py": (2, "No module named 'msal'", "msal"),
}
FAULTY_FILES = {
    "faulty_exit_agent.py": (4, "it ends the program (sys.exit)"),
    "faulty_import_agent.py": (8, "KeyError: 'RAPP_FIXTURE_NOT_SET'"),
    "faulty_message_agent.py": (9, "Mute: (its message cannot be read)"),
    "faulty_name_import_agent.py": (
        2,
        "cannot import name 'get_quantum_storage' from 'agents.compat.storage'",
    ),
    "faulty_nothing_agent.py": (None, "it defines no agent, a class with name, metadata and perform"),
    "faulty_syntax_agent.py": (5, "expected ':'"),
    "missing_neighbour_agent.py": (3, "No module named 'agents.never_written_agent'"),
}
FAULTY_CLASSES = {
    "faulty_arguments_agent.py": (
        "Wants",
        5,
        "making Wants failed: TypeError: Wants.__init__() missing 1 required positional argument: 'address'",
    ),
    "faulty_constructor_agent.py": ("Faulty", 26, "making Faulty failed: KeyError: 'missing'"),
    "metadata_absent_agent.py": ("Unfit", 4, "Unfit has no metadata"),
    "metadata_list_agent.py": ("Unfit", 5, "Unfit: metadata is a list, not a dict"),
    "metadata_not_json_agent.py": (
        "Unfit",
        5,
        "Unfit: parameters cannot be written as JSON (Type is not JSON serializable: set)",
    ),
    "metadata_parameters_array_agent.py": (
        "Unfit",
        5,
        "Unfit: the type of parameters is 'array'; it must be 'object'",
    ),
    "metadata_parameters_text_agent.py": ("Unfit", 5, "Unfit: parameters is a str, not a dict"),
    "metadata_parameters_untyped_agent.py": (
        "Unfit",
        5,
        "Unfit: the type of parameters is missing; it must be 'object'",
    ),
    "metadata_properties_absent_agent.py": (
        "Unfit",
        5,
        "Unfit: properties of parameters is missing; it must be a dict",
    ),
    "metadata_properties_list_agent.py": (
        "Unfit",
        5,
        "Unfit: properties of parameters is a list; it must be a dict",
    ),
}
SEVERAL_AGENTS = {
    "duplicate_two_agent.py": ["Duplicate", "Duplicate"],
    "faulty_constructor_agent.py": ["FaultyNot", "AfterFaulty"],
    "illegal_names_agent.py": [
        *("Hacker News!", "mail.send.v2", "Überblick für Åse", "天気", "An" + "other" * 30, "Named"),
    ],
    "several_agent.py": ["SeveralFirst", "SeveralSecond", "SeveralThird"],
    "shared_base_agent.py": ["NewsFeed", "WeatherFeed"],
}


async def described(worker_host: Any) -> dict[str, dict[str, Any]]:
    answer = await worker_host.ask("describe", {"files": worker_host.files()})
    return {found["rel"]: found for found in answer["files"]}


async def test_everything_loads_but_missing_sdk_or_faulty(collection: Any) -> None:
    found = await described(collection)
    failing = {rel for rel, one in found.items() if one["failure"]}
    assert failing == {*NEED_A_CLOUD_SDK, *FAULTY_FILES}
    assert {rel for rel, one in found.items() if one["quarantined"]} == set(FAULTY_CLASSES)
    for rel, one in found.items():
        if not one["failure"] and rel not in FAULTY_CLASSES:
            assert one["agents"], rel
    assert len(found) == 67


async def test_reasons_and_lines_of_files_that_do_not_load(collection: Any) -> None:
    found = await described(collection)
    for rel, (line, reason, missing) in NEED_A_CLOUD_SDK.items():
        failure = found[rel]["failure"]
        assert (failure["line"], failure["reason"], failure["missing_module"]) == (line, reason, missing)
    for rel, expected in FAULTY_FILES.items():
        failure = found[rel]["failure"]
        assert (failure["line"], failure["reason"]) == expected, rel
        assert failure["missing_module"] is None, "nothing to install helps here"
        assert failure["file"] == rel


async def test_reasons_and_lines_of_classes_that_give_no_agent(collection: Any) -> None:
    found = await described(collection)
    for rel, expected in FAULTY_CLASSES.items():
        (failure,) = found[rel]["quarantined"]
        assert (failure["class_name"], failure["line"], failure["reason"]) == expected, rel


async def test_several_agents_in_one_file(collection: Any) -> None:
    found = await described(collection)
    for rel, names in SEVERAL_AGENTS.items():
        assert [one["name"] for one in found[rel]["agents"]] == names, rel
    for rel, one in found.items():
        if rel not in SEVERAL_AGENTS and not one["failure"] and not one["quarantined"]:
            assert len(one["agents"]) == 1, rel


async def test_names_models_refuse_are_offered_changed(collection: Any) -> None:
    found = await described(collection)
    offered = [one["tool_name"] for one in found["illegal_names_agent.py"]["agents"]]
    assert offered[:3] == ["Hacker_News", "mail_send_v2", "Uberblick_fur_Ase"]
    assert all(
        0 < len(name) <= 64 and name.replace("_", "a").isalnum() and name.isascii() for name in offered
    )
    assert len(set(offered)) == len(offered)


async def test_what_an_agent_says_about_itself(collection: Any) -> None:
    found = await described(collection)
    (one,) = found["with_manifest_agent.py"]["agents"]
    assert one["manifest"] == {
        "name": "@someone/with_manifest",
        "display_name": "With Manifest",
        "version": "1.2.3",
        "author": "Someone",
        "tags": ["example", "manifest"],
    }
    assert one["parameters"]["properties"]["query"]["type"] == "string"
    assert (one["description"], one["class_name"]) == ("Carries a manifest", "WithManifestAgent")
    assert not one["has_system_context"]
    (flags,) = found["manifest_flags_agent.py"]["agents"]
    assert flags["idempotent"]
    assert flags["one_worker"]
    (attributes,) = found["attributes_agent.py"]["agents"]
    assert attributes["description"] == "Reads its name from the class."
    assert attributes["parameters"]["properties"] == {"limit": {"type": "integer"}}
    assert attributes["idempotent"]
    assert found["system_context_agent.py"]["agents"][0]["has_system_context"]
    assert found["base_none_agent.py"]["agents"][0]["parameters"] == {"type": "object", "properties": {}}
    assert found["async_agent.py"]["seconds"] >= 0


ANSWERS = {
    "@someone/published_agent.py": ("Published", "Published heard rain"),
    "async_agent.py": ("Async", "waited for rain"),
    "attributes_agent.py": ("Attributes", "3"),
    "base_guarded_own_agent.py": ("BaseGuardedOwn", "BaseGuardedOwn heard rain"),
    "base_guarded_three_agent.py": ("BaseGuardedThree", "BaseGuardedThree heard rain"),
    "base_guarded_two_agent.py": ("BaseGuardedTwo", "BaseGuardedTwo heard rain"),
    "base_none_agent.py": ("BaseNone", "bare"),
    "base_openrappter_agent.py": ("BaseOpenrappter", '{"status": "success", "data_slush": {"mood": "calm"}}'),
    "base_package_agent.py": ("BasePackage", "BasePackage heard rain"),
    "base_plain_agent.py": ("BasePlain", "BasePlain heard rain"),
    "base_relative_agent.py": ("BaseRelative", "BaseRelative heard rain"),
    "base_skills_agent.py": ("BaseSkills", "BaseSkills heard rain"),
    "closed_agent.py": ("Closed", "closed rain"),
    "dataclass_agent.py": ("Dataclass", "a3"),
    "defaults_agent.py": ("Defaults", "rain rain"),
    "duplicate_two_agent.py": ("Duplicate", "third"),
    "faulty_constructor_agent.py": ("AfterFaulty", "after"),
    "illegal_names_agent.py": ("天気", "天気"),
    "init_bare_agent.py": ("InitBare", "InitBare heard rain"),
    "init_positional_agent.py": ("InitPositional", "InitPositional heard rain"),
    "init_skipped_agent.py": ("InitSkipped", "InitSkipped heard rain"),
    "may_use_azure_agent.py": ("MayUseAzure", "no cloud"),
    "may_use_msal_agent.py": ("MayUseMsal", "no msal"),
    "neighbour_import_agent.py": ("NeighbourImport", "BasePlain heard rain"),
    "reexport_agent.py": ("BasePackage", "BasePackage heard rain"),
    "required_argument_agent.py": ("RequiredArgument", "demanded rain"),
    "returns_dict_agent.py": (
        "ReturnsDict",
        '{"status": "success", "seen": "rain", "data_slush": {"seen": true}}',
    ),
    "several_agent.py": ("SeveralThird", "first"),
    "shared_base_agent.py": ("WeatherFeed", "weather"),
    "storage_both_agent.py": ("StorageBoth", "two one ['one.txt', 'two.txt']"),
    "storage_names_agent.py": ("StorageNames", "True"),
    "uses_bs4_agent.py": ("UsesBs4", "hi"),
    "uses_requests_agent.py": ("UsesRequests", "http://127.0.0.1/a"),
    "uses_result_agent.py": ("UsesResult", "3 7 False True"),
    "uses_yaml_agent.py": ("UsesYaml", "{'a': [1, 2]}"),
    "with_manifest_agent.py": ("WithManifest", "WithManifest heard rain"),
    "workspace_agents/kitchen/recipe_agent.py": ("Recipe", "Recipe heard rain"),
}


async def test_every_form_of_perform_answers(collection: Any) -> None:
    for rel, (name, expected) in ANSWERS.items():
        assert await collection.perform(collection.file(rel), name, query="rain") == expected, rel


@pytest.mark.parametrize(
    ("rel", "name", "reason"),
    [
        ("uses_bond_agent.py", "UsesBond", "utils.bond.BondManager is not available: eggs are packed"),
        ("uses_index_card_agent.py", "UsesIndexCard", "utils.index_card.IndexCard is not available"),
        ("uses_agent_manager_agent.py", "UsesAgentManager", "utils.agent_manager.AgentManager is not"),
        ("uses_copilot_studio_api_agent.py", "UsesCopilotStudioApi", "no connection to Copilot Studio"),
        ("raises_agent.py", "Raises", "RuntimeError: no rain gauge"),
    ],
)
async def test_what_an_agent_cannot_do_is_said(collection: Any, rel: str, name: str, reason: str) -> None:
    with pytest.raises(AgentRaisedError, match=reason):
        await collection.perform(collection.file(rel), name, query="rain")


async def test_nothing_is_written_beside_the_agents(collection: Any) -> None:
    before = {path for path in collection.root.rglob("*") if collection.data not in path.parents}
    await described(collection)
    await collection.perform(collection.file("neighbour_import_agent.py"), "NeighbourImport")
    assert {path for path in collection.root.rglob("*") if collection.data not in path.parents} == before
