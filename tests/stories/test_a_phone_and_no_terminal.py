"""An owner who never sees a terminal: scans with the phone, compares six digits, chats, and a twin answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.owned_machine import machines
from lan.network import Lan
from lan.phones import Phone, browsers_on, seen_by_a_camera
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def test_person_without_a_terminal_scans_compares_chats_and_sees_a_twin_answer(
    lan: Lan, tmp_path: Path
) -> None:
    (desk,) = machines(lan, tmp_path, "desk", LLM_FAKE="1")
    desk.makes_twin("Gardener", "You tend the garden.")
    street = lan.machine("phone")
    with browsers_on(tmp_path, desk.machine, street) as (computer, handset):
        screen = computer.new_context().new_page()
        phone = Phone(handset, desk)

        screen.goto(desk.ask("POST", "/operator/key")["url"])
        screen.get_by_role("link", name="Devices").click()
        screen.get_by_role("button", name="Add a phone").first.click()
        (link,) = desk.wait_for(lambda: seen_by_a_camera(screen), what="a QR code on the screen")

        digits = phone.shows_digits(link)
        expect(screen.get_by_text(digits)).to_be_visible()
        phone.page.get_by_role("button", name="Same number").click()
        screen.get_by_role("button", name="Same, mine").click()
        phone.page.get_by_role("button", name="Start talking").click()
        phone.is_connected()

        phone.asks("hello")
        with phone.more():
            phone.page.get_by_role("button", name="New", exact=True).click()
        phone.page.get_by_role("dialog", name="Talk with").get_by_role("button", name="Gardener").click()
        phone.asks("how are the tomatoes?")
        expect(phone.page.get_by_text("fake-llm: how are the tomatoes?")).to_be_visible()
        assert phone.errors == []
