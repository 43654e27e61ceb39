"""The owner's operations on webhooks: list, add, remove."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NotRequired, TypedDict

from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.operation import OWNER, Text, operation
from rappd.features.webhooks.webhooks import Webhook, Webhooks, new_webhook
from rappd.tenants.tenants import Tenants

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_LONGEST_ASK = 1000


class WebhookRow(TypedDict):
    """A webhook with its address; ``secret`` is told when it is made, and at no other time."""

    name: str
    address: str
    path: str
    workspace: str
    agent: str
    ask: str
    signed: bool
    folder: str
    secret: NotRequired[str]


class WebhookOperations:
    """The addresses are the owner's to know: who has one may have a turn with everyday rights."""

    def __init__(self, webhooks: Webhooks, tenants: Tenants, port: Callable[[], int], home: Path) -> None:
        self._webhooks, self._tenants, self._port, self._home = webhooks, tenants, port, home

    @operation("webhooks.list", "GET", "/webhooks", right=OWNER, answers="webhooks")
    def listing(self) -> list[WebhookRow]:
        """Lists all webhooks with their addresses; secrets are not told again."""
        return [self._view(one) for one in self._webhooks.all()]

    @operation("webhooks.add", "POST", "/webhooks", right=OWNER, answers="webhook")
    async def add(
        self,
        name: Text,
        twin: str = "",
        agent: str = "",
        ask: str = "",
        signed: bool = False,
        folder: str = "",
    ) -> WebhookRow:
        """Makes an address for `name`: what is posted there becomes a turn of the brainstem, of a `twin`, or of an `agent`.

        `ask` goes before what is posted. With `signed` it gets a secret, told here once, by which posts have to be signed
        (`X-Hub-Signature-256`). Files that are put into `folder` come in the same way.
        """
        if _NAME.fullmatch(name) is None:
            raise UsageProblemError(
                f"“{name[:60]}” is no name for a webhook.", do="Use up to 40 letters, digits, - and _."
            )
        if len(ask) > _LONGEST_ASK:
            raise UsageProblemError(
                f"An instruction has {_LONGEST_ASK} characters at most.", do="Shorten it."
            )
        tenant = await self._tenants.twin(twin) if twin else self._tenants.host
        if agent and tenant.registry.named(agent) is None:
            raise NotFoundError(f'No agent "{agent[:80]}".', do="rappd agents list")
        hook = new_webhook(
            name, tenant.name, agent=agent, ask=ask, signed=signed, folder=self._folder(folder)
        )
        self._webhooks.add(hook)
        return {**self._view(hook), "secret": hook.secret}

    @operation("webhooks.remove", "DELETE", "/webhooks/{webhook}", right=OWNER, answers="webhook")
    def remove(self, webhook: str) -> WebhookRow:
        """Removes one: its address is nobody's from now on."""
        return self._view(self._webhooks.remove(webhook))

    def _folder(self, folder: str) -> str:
        if not folder:
            return ""
        path = Path(folder)
        if not path.is_absolute() or not path.is_dir():
            raise UsageProblemError(
                f"{folder[:200]} is no folder.", do="Give the path of a folder that is there."
            )
        if path.resolve().is_relative_to(self._home.resolve()):
            raise UsageProblemError("A folder of rappd's own is not watched.", do="Choose another one.")
        return str(path)

    def _view(self, hook: Webhook) -> WebhookRow:
        return {
            "name": hook.name,
            "address": f"http://127.0.0.1:{self._port()}/hooks/{hook.id}",
            "path": f"/hooks/{hook.id}",
            "workspace": hook.workspace,
            "agent": hook.agent,
            "ask": hook.ask,
            "signed": bool(hook.secret),
            "folder": hook.folder,
        }
