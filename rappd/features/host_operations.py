"""Operations that approved agents ask for by ``utils.host``: the rows of the table that have a name for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rappd.errors import NotFoundError
from rappd.features.operation import agent_operations_of, awaitable
from rappd.tenants.tenant import Tenant


class HostOperations:
    """The operations of some objects, by the names that agents have for them. What has none cannot be asked for."""

    def __init__(self, *features: object) -> None:
        self._rows = [
            (
                re.compile(re.sub(r"\\?\{(\w+)\\?\}", r"(?P<\1>.+)", re.escape(one.agents))),
                one,
                awaitable(one.function, feature),
            )
            for feature in features
            for one in agent_operations_of(type(feature))
        ]

    async def perform(self, tenant: Tenant, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Returns the operation's result. ``tenant``: the workspace whose agent asks.

        Raises ``ReportableError``: as over HTTP for arguments that do not fit, ``NotFoundError`` for an unknown name.
        """
        for name, one, perform in self._rows:
            if named := name.fullmatch(operation):
                given = {**arguments, **named.groupdict()}
                present = {
                    key: value for key, value in given.items() if value != "" or key not in one.in_path
                }
                whose = (tenant,) if one.of_tenant else ()
                return await perform(*whose, **one.read(present, as_text=False))
        raise NotFoundError(f'There is no operation "{operation[:40]}".')
