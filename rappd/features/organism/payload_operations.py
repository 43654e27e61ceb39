"""Operations of typed payloads: what takes them, with schemas and examples, here and for those who ask ``core``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NotRequired, TypedDict
from xml.sax.saxutils import escape, quoteattr

from envelopes.payloads.form import NAMESPACES, PayloadForm, Typed
from rappd.dispatch.endpoints import Call, Endpoint, Endpoints
from rappd.dispatch.rights import Caller
from rappd.errors import NotFoundError, RefusedError
from rappd.features.operation import ANYBODY, operation
from rappd.organism.organism import MetaFlags
from rappd.tenants.tenant import Tenant

META_NS = f"{NAMESPACES}/meta/v1"


class ListenerRow(TypedDict):
    """A listener or an agent that takes a typed payload."""

    name: str
    namespace: str
    root: str
    description: str


class ListenerShown(ListenerRow):
    """The same with its schemas, an example and its text for models, as far as the flags show them."""

    xsd: NotRequired[str]
    example: NotRequired[str]
    schema: NotRequired[dict[str, Any]]
    prompt: NotRequired[str]


class Introspection:
    """Answers of ``core`` to what may be asked of the organism: which capabilities there are, and their schemas."""

    def __init__(self, version: Callable[[PayloadForm], int], meta: MetaFlags | None, caller: Caller) -> None:
        """``version`` gives the number of a form's schema. ``meta``: the flags of ``organism.yaml``, None without any."""
        self._version, self._meta, self._caller = version, meta, caller

    def may_list(self) -> bool:
        """True where the flags let the caller ask for the list."""
        return self._may_ask() and (self._meta is None or self._meta.allow_list_capabilities)

    def may_see(self, kind: str) -> bool:
        """True where they let it ask for a ``schema``, an ``example`` or a ``prompt``."""
        if not self._may_ask():
            return False
        level = "authenticated" if self._meta is None else getattr(self._meta, f"allow_{kind}_requests")
        return level == "authenticated" or (level == "admin" and self._caller.operator)

    def _may_ask(self) -> bool:
        meta = self._meta
        return meta is None or (meta.enabled and (self._caller.caps is None or meta.allow_remote))

    def rows(self, offered: Sequence[Endpoint[Call]]) -> list[ListenerRow]:
        """Name, namespace, root and description of each."""
        return [
            {
                "name": one.name,
                "namespace": _form(one).namespace(self._version(_form(one))),
                "root": _form(one).root,
                "description": one.description,
            }
            for one in offered
            if one.kind == "agent" and one.payload is not None
        ]

    def whole(self, endpoint: Endpoint[Call]) -> ListenerShown:
        """A listener or an agent with its XSD, an example, its JSON Schema, and its text for models."""
        from envelopes.payloads.schemas import example, tool_text, xml_text, xsd

        form = _form(endpoint)
        version = self._version(form)
        row = self.rows([endpoint])[0]
        return {
            "name": row["name"],
            "namespace": row["namespace"],
            "root": row["root"],
            "description": row["description"],
            "xsd": xsd(form, version),
            "example": xml_text(form, example(form), version),
            "schema": endpoint.input,
            "prompt": tool_text(form),
        }

    def answer(self, offered: Sequence[Endpoint[Call]], typed: Typed) -> dict[str, Any]:
        """The data of the DONE to a request of the meta namespace.

        Raises ``RefusedError``, with the same words for what is not there and for what the caller may not use.
        """
        from envelopes.codecs.xml_message import element_of

        if typed.root == "list-capabilities":
            if not self.may_list():
                raise _refused()
            inner = "".join(map(_row, self.rows(offered)))
            return _meta("capabilities", inner)
        kind = _ANSWERED.get(typed.root)
        asked = element_of(typed.body).findtext(f"{{{META_NS}}}capability") or ""
        found = [one for one in offered if one.kind == "agent" and asked in (one.name, _form(one).name)]
        if kind is None or len(found) != 1 or not self.may_see(typed.root.removeprefix("request-")):
            raise _refused()
        return _meta(typed.root.removeprefix("request-"), escape(self.whole(found[0])[kind]))


_ANSWERED: dict[str, Literal["xsd", "example", "prompt"]] = {
    "request-schema": "xsd",
    "request-example": "example",
    "request-prompt": "prompt",
}


def _refused() -> RefusedError:
    return RefusedError("Not allowed.", do="Ask this machine's owner to share it.")


def _form(endpoint: Endpoint[Call]) -> PayloadForm:
    assert endpoint.payload is not None
    return endpoint.payload


def _row(row: ListenerRow) -> str:
    shown = {"name": row["name"], "namespace": row["namespace"], "root": row["root"]}
    attributes = "".join(f" {key}={quoteattr(text)}" for key, text in shown.items())
    return f"<capability{attributes}>{escape(row['description'])}</capability>"


def _meta(root: str, inner: str) -> dict[str, Any]:
    return {"ns": META_NS, "root": root, "body": f'<{root} xmlns="{META_NS}">{inner}</{root}>'}


class OrganismOperations:
    """The same as programs elsewhere ask of `core` in the meta namespace; agents that change structure are not among it."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    @operation(
        "organism.listeners", "GET", "/organism/listeners", right=ANYBODY, of_tenant=True, answers="listeners"
    )
    async def listeners(self, tenant: Tenant, caller: Caller) -> list[ListenerRow]:
        """Lists all that takes a typed payload: name, namespace, root and description."""
        asked = introspection(tenant, caller)
        if not asked.may_list():
            raise _refused()
        return asked.rows(self._endpoints.agents(tenant.name, Caller("loopback")))

    @operation("organism.listener", "GET", "/organism/listeners/{name}", right=ANYBODY, of_tenant=True)
    async def listener(self, tenant: Tenant, name: str, caller: Caller) -> ListenerShown:
        """A listener or an agent with its XSD, an example in XML, its JSON Schema, and its text for models.

        What the flags of `organism.yaml` keep back is left out.
        """
        asked = introspection(tenant, caller)
        if not any(map(asked.may_see, _SEEN)):
            raise _refused()
        offered = self._endpoints.agents(tenant.name, Caller("loopback"))
        found = [one for one in offered if one.kind == "agent" and name in (one.name, _form(one).name)]
        if len(found) != 1:
            raise NotFoundError(
                f"Nothing here is called “{name[:60]}”.", do="GET /organism/listeners lists them."
            )
        shown = asked.whole(found[0])
        if not asked.may_see("schema"):
            del shown["xsd"], shown["schema"]
        if not asked.may_see("example"):
            del shown["example"]
        if not asked.may_see("prompt"):
            del shown["prompt"]
        return shown


_SEEN = ("schema", "example", "prompt")


def introspection(tenant: Tenant, caller: Caller) -> Introspection:
    """The answers that a caller gets of a tenant, under the flags in force."""
    return Introspection(tenant.schemas.version, tenant.organism.current.meta, caller)
