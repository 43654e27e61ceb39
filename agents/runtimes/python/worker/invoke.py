"""Calls an agent's perform with the arguments it wants, awaits it if need be, and reads its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any, NamedTuple

from agents.contract.perform_signature import PerformSignature, signature_of
from agents.runtimes.python.worker.result_text import (
    NoTextError,
    OnPiece,
    as_text,
    is_generator,
    joined,
    joined_async,
)
from agents.slosh.context import Context
from agents.slosh.invocation import slosh
from agents.slosh.layers import MemoryReader
from agents.slosh.slush import outcome


class Invocation(NamedTuple):
    """The return value of perform; the ``data_slush`` in it, of whatever type; the context."""

    value: Any
    data_slush: Any
    context: Context


class InvocationResult(NamedTuple):
    """A finished call: the text for the model, and the signals for the next agent, if any."""

    result: str
    data_slush: dict[str, Any] | None


def perform(
    instance: Any,
    arguments: Mapping[str, Any],
    *,
    user_guid: str,
    upstream_slush: Mapping[str, Any] | None = None,
    memory_reader: MemoryReader | None = None,
    on_piece: OnPiece | None = None,
) -> InvocationResult:
    """Perform ``instance`` on behalf of a caller, with what a model chose as ``arguments``.

    Arguments that the signature does not accept are left out. ``user_guid`` goes to agents that want
    it (in their schema, as a parameter, or named in their code), and whatever GUID the model wrote
    is replaced by it. ``memory_reader(user_guid)`` is called only if the agent looks at its memory.
    ``on_piece`` is told what a perform yields, as it comes. What perform raises goes through.
    """
    given = dict(arguments)
    wanted = signature_of(instance)
    if "user_guid" in given or "user_guid" in wanted.speaks_of or "user_guid" in _properties(instance):
        given["user_guid"] = user_guid
    value, slush, _ = _invoke(instance, wanted, given, user_guid, upstream_slush, memory_reader, on_piece)
    try:
        text = as_text(value)
    except NoTextError as error:
        error.perform_line = _line_of(instance)
        raise
    return InvocationResult(text, slush if isinstance(slush, dict) else None)


def invoke(
    instance: Any,
    arguments: dict[str, Any],
    *,
    user_guid: str | None = None,
    upstream_slush: Mapping[str, Any] | None = None,
    memory_reader: MemoryReader | None = None,
) -> Invocation:
    """Slosh ``instance`` and perform it with ``arguments``, which are used up; awaits an async perform.

    ``_context`` is added for a perform that names it. ``instance.last_data_slush`` is set where the
    class has one, ``instance.context`` also on classes that are not ours and leave it free.
    """
    wanted = signature_of(instance)
    return Invocation(*_invoke(instance, wanted, arguments, user_guid, upstream_slush, memory_reader))


def _invoke(
    instance: Any,
    wanted: PerformSignature,
    arguments: dict[str, Any],
    user_guid: str | None,
    upstream_slush: Mapping[str, Any] | None,
    memory_reader: MemoryReader | None,
    on_piece: OnPiece | None = None,
) -> tuple[Any, Any, Context]:
    declared = _declared_slush(instance, wanted, arguments) if "upstream_slush" in arguments else None
    invocation = slosh(
        instance, arguments, user_guid=user_guid, upstream_slush=upstream_slush, memory=memory_reader
    )
    context = invocation.context
    arguments.pop("_context", None)
    if declared:
        arguments.update(declared)
    if "_context" in wanted.speaks_of:
        arguments["_context"] = context
    if wanted.keeps_slush and instance.last_data_slush is not None:
        instance.last_data_slush = None
    if wanted.leaves_context_free:
        _offer(instance, context)
    with invocation:
        value = settled(wanted.call(instance.perform, arguments), on_piece)
    slush, feedback = outcome(value)
    if feedback is not None:
        invocation.learn(feedback)
    if slush is not None and wanted.keeps_slush:
        instance.last_data_slush = slush
    return value, slush, context


def _properties(instance: Any) -> Mapping[str, Any]:
    """The parameters in the agent's schema, as far as it has a usable one."""
    metadata = getattr(instance, "metadata", None)
    parameters = metadata.get("parameters") if isinstance(metadata, dict) else None
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    return properties if isinstance(properties, dict) else {}


def _declared_slush(
    instance: Any, wanted: PerformSignature, arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """``upstream_slush`` as an argument, for agents that declare it as one of their own."""
    if "upstream_slush" in wanted.parameters or "upstream_slush" in _properties(instance):
        return {"upstream_slush": arguments["upstream_slush"]}
    return {}


def _offer(instance: Any, context: Context) -> None:
    """Set ``instance.context``, unless the agent keeps something of its own there."""
    offered = getattr(instance, "context", None)
    if offered is None or isinstance(offered, Context):
        try:
            instance.context = context
        except (AttributeError, TypeError):  # slots, or frozen
            return


def settled(value: Any, on_piece: OnPiece | None = None) -> Any:
    """``value``, or what it comes to when it is awaitable or a generator. Its exceptions are raised here.

    Each awaitable gets an event loop of its own; where one is running in this thread already, in
    another thread, for which this one stands still.
    """
    if type(value) is str:
        return value
    if is_generator(value):
        if not hasattr(value, "__anext__"):
            return joined(value, on_piece)
        value = joined_async(value, on_piece)
    elif not hasattr(type(value), "__await__"):
        return value
    import asyncio

    async def finish() -> Any:
        found = await value
        return await joined_async(found, on_piece) if hasattr(found, "__anext__") else found

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        found = asyncio.run(finish())
    else:
        found = _elsewhere(lambda: asyncio.run(finish()))
    return joined(found, on_piece) if is_generator(found) else found


def _elsewhere(run: Callable[[], Any]) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, thread_name_prefix="async-perform") as pool:
        return pool.submit(copy_context().run, run).result()


def _line_of(instance: Any) -> int:
    function = getattr(instance.perform, "__func__", instance.perform)
    code = getattr(function, "__code__", None)
    return code.co_firstlineno if code is not None else 0
