"""Registered devices survive a restart, and a window is good once."""

from __future__ import annotations

import errno
import json
import time
from pathlib import Path

import pytest
from fixtures.refusals import refused

from rappd.errors import AmbiguousError, StoreError, UsageProblemError
from rappd.tether.devices import IDLE_DAYS, DeviceRegistry, by_secret_alone
from rappd.tether.pairing_window import BAD_IN_ALL, BAD_OF_ONE_SOURCE, PairingWindow


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def registry(tmp_path: Path) -> DeviceRegistry:
    return DeviceRegistry(tmp_path / "devices.json")


def add(registry: DeviceRegistry, byte: int, name: str = "Phone") -> str:
    return registry.add(bytes([byte] * 32), name, scope="talk", user="", seen_from="10.0.0.5").id


def test_registry_keeps_devices_for_the_owner_alone(registry: DeviceRegistry, tmp_path: Path) -> None:
    id = add(registry, 1)
    path = tmp_path / "devices.json"
    assert path.stat().st_mode & 0o777 == 0o600
    again = DeviceRegistry(path).get(id)
    assert again is not None and again.name == "Phone" and again.caps == ("HELP.*", "TIMER")


def test_registry_gives_each_device_a_name_of_its_own(registry: DeviceRegistry) -> None:
    add(registry, 1)
    add(registry, 2)
    assert sorted(one.name for one in registry.all()) == ["Phone", "Phone 2"]
    with pytest.raises(UsageProblemError):
        registry.rename(registry.find("Phone 2"), "phone")


def test_registry_finds_by_name_and_start_of_the_id(registry: DeviceRegistry) -> None:
    id = add(registry, 1, "Anna")
    assert registry.find("anna").id == registry.find(id[:8]).id == id
    with refused("no_such_device"):
        registry.find("Bert")


def test_registry_shortened_id_of_two_is_ambiguous(registry: DeviceRegistry) -> None:
    first = bytes([9] * 32)
    registry.add(first, "A", scope="talk", user="", seen_from="")
    registry.add(first[:-1] + b"\0", "B", scope="talk", user="", seen_from="")
    with pytest.raises(AmbiguousError):
        registry.find("090909")


def test_registry_removed_device_is_gone(registry: DeviceRegistry, tmp_path: Path) -> None:
    id = add(registry, 1)
    registry.remove(registry.find("Phone"))
    again = DeviceRegistry(tmp_path / "devices.json")
    assert again.get(id) is None and again.all() == []


def test_registry_forgets_devices_that_stay_away(tmp_path: Path) -> None:
    clock = Clock()
    add(DeviceRegistry(tmp_path / "devices.json", clock), 1)
    clock.now += IDLE_DAYS * 86_400 + 1
    assert DeviceRegistry(tmp_path / "devices.json", clock).all() == []


def test_registry_damaged_file_lets_nobody_in(tmp_path: Path) -> None:
    (tmp_path / "devices.json").write_text('{"devices": 5}')
    with pytest.raises(StoreError, match=r"devices\.json cannot be read"):
        DeviceRegistry(tmp_path / "devices.json")


def test_registry_tells_each_address_of_a_websocket_once(registry: DeviceRegistry, tmp_path: Path) -> None:
    device = registry.find(add(registry, 1))
    by_socket = registry.add(b"", "Other", scope="talk", user="", seen_from="10.0.0.5")
    assert device.sockets_from == [] and by_socket.sockets_from == ["10.0.0.5"]
    told = [registry.seen_by_socket(device, address) for address in ("10.0.0.5", "10.0.0.6", "10.0.0.5")]
    assert told == [True, True, False]
    for number in range(99):
        registry.seen_by_socket(device, f"10.0.1.{number}")
    again = DeviceRegistry(tmp_path / "devices.json").get(device.id)
    assert again is not None and len(again.sockets_from) == 32 and again.sockets_from[-1] == "10.0.1.98"


def test_registry_of_an_earlier_version_keeps_its_devices(tmp_path: Path) -> None:
    (tmp_path / "devices.json").write_text(EARLIER)
    (device,) = DeviceRegistry(tmp_path / "devices.json").all()
    assert device.fingerprint == bytes([0xAB] * 32) and device.sockets_from == []
    alone = by_secret_alone(device)
    assert set(device.caps) == {"HELP.*", "TIMER", "WORKFLOW", "EGG", "NOTICES"}
    assert alone.caps == ("HELP.*", "TIMER")


EARLIER = json.dumps(
    {"devices": [{
        "id": "ab" * 32, "name": "iPhone", "secret": "A" * 43, "scope": "talk", "workflows": True, "eggs": True,
        "notices": True, "version": 7, "user": "", "certificate": True, "created_at": time.time(),
        "seen_at": time.time(), "seen_from": "10.0.0.5", "session": "",
    }]}
)  # fmt: skip


def test_window_closes_by_time_use_or_bad_proofs() -> None:
    clock = Clock()

    def window() -> PairingWindow:
        return PairingWindow(120, "talk", "", clock=clock)

    late, used, tried = window(), window(), window()
    assert late.fits("", "10.0.0.5") and late.fits(late.id, "10.0.0.5") and not late.fits("other", "10.0.0.5")
    late.bad_proofs["10.0.0.6"] = BAD_OF_ONE_SOURCE
    assert late.fits("", "10.0.0.5") and not late.fits("", "10.0.0.6")
    used.used = True
    tried.bad_proofs.update({str(number): 1 for number in range(BAD_IN_ALL)})
    clock.now += 119
    assert late.open and not used.open and not tried.open
    clock.now += 1
    assert not late.fits(late.id, "10.0.0.5") and late.remaining == 0


def test_window_lives_ten_minutes_at_most() -> None:
    assert PairingWindow(86_400, "talk", "", clock=Clock()).remaining == 600


def test_registry_change_that_cannot_be_written_down_is_none(
    registry: DeviceRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = add(registry, 1)
    device = registry.find("Phone")
    before = device.shown() | {"version": device.version}

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rappd.tether.devices.write_atomically", full)
    for change in (
        lambda: add(registry, 2),
        lambda: registry.rename(device, "Anna"),
        lambda: registry.allow(device, "listen", workflows=True),
    ):
        with pytest.raises(StoreError, match=r"The disk is full; devices\.json cannot grow"):
            change()
        assert [one.id for one in registry.all()] == [id]
        assert device.shown() | {"version": device.version} == before
    assert registry.seen(device, "10.0.0.6", "s"), "a phone may come back all the same"
    for _ in range(2):
        with pytest.raises(
            StoreError, match=r"Phone is shut out until rappd starts again\. The disk is full"
        ) as told:
            registry.remove(registry.find("Phone"))
        assert told.value.do.endswith("then remove it once more.")
        assert registry.get(id) is None, "what is revoked is revoked at once"
        assert [one.id for one in registry.all()] == [id], "the owner can remove it again"


@pytest.mark.parametrize("later", ["removed again", "another change"])
def test_registry_removal_without_room_is_made_up_for(
    registry: DeviceRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    id, other = add(registry, 1), add(registry, 2, "Other")

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rappd.tether.devices.write_atomically", full)
        with pytest.raises(StoreError):
            registry.remove(registry.find("Phone"))
    if later == "removed again":
        registry.remove(registry.find("Phone"))
    else:
        registry.rename(registry.find("Other"), "Anna")
    assert [one.id for one in registry.all()] == [other]
    assert DeviceRegistry(tmp_path / "devices.json").get(id) is None
    assert add(registry, 1) == id
    assert registry.get(id) is not None, "it may be paired anew"
