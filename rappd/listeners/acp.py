"""The Agent Client Protocol at ``/acp``, a WebSocket: what an editor's sessions, prompts and cancels become here.

Sessions are conversations in the record. What a connection holds is what ends with it: prompts under way, questions to
the editor, and the twin that a session without a turn is for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
from aiohttp import WSMsgType, web
from msgspec.structs import replace

from envelopes.codecs import acp, jsonrpc
from envelopes.codecs.acp import Updates
from envelopes.codecs.chat import ChatRequest
from envelopes.codecs.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Id,
    RpcAnswer,
    RpcCall,
    RpcError,
)
from envelopes.codecs.pictures import checked
from envelopes.envelope import ERROR, Envelope, new_id
from envelopes.errors import ReportableError
from rappd.daemon.waiting_answers import OwnersList
from rappd.dispatch.turns import RequestCancelledError, Turn
from rappd.errors import RefusedError
from rappd.features.conversations.conversations import Conversations
from rappd.listeners.bodies import plain, problem
from rappd.listeners.federation.callers import FEDERATION
from rappd.listeners.program_requests import MOST_AT_ONCE, note_refusal
from rappd.listeners.program_turns import RefusedTurnError, begin
from rappd.listeners.programs import BRAINSTEM, Program, Target, program_of, shown_name, target_of, targets
from rappd.listeners.recorded_program_turns import earlier, thread_in
from rappd.version import __version__
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)
routes = web.RouteTableDef()

MOST_AT_WORK = 32
"""Requests of one editor under way at once."""
MOST_REPLAYED = 200
"""Turns of a session that is loaded."""
_LISTED = 50
_HEARTBEAT = 20.0
_NOT_FOUND = -32002
_NUMBERS = dict.fromkeys((400, 413, 422), INVALID_PARAMS) | {404: _NOT_FOUND}
"""The protocol's numbers of refusals that are the editor's fault, by their status."""
_MOST_OF_A_FILE = 200_000


@routes.get("/acp")
async def connect(request: web.Request) -> web.StreamResponse:
    """An editor's connection, a WebSocket: messages of the Agent Client Protocol, one in each frame."""
    try:
        program = program_of(request, "acp")
        if request.headers.get("Origin") not in (None, *program.daemon.live_settings.origins):
            raise RefusedError("Pages of other sites may not connect.", do="Add the site to http.origins.")
    except ReportableError as found:
        note_refusal(request, "acp", None, found)
        return problem(found)
    most = MOST_AT_ONCE if FEDERATION in request.app else jsonrpc.MOST_BYTES
    socket = web.WebSocketResponse(heartbeat=_HEARTBEAT, max_msg_size=most, compress=False)
    # The protocol's transport names each connection; a WebSocket is never asked for it.
    socket.headers["Acp-Connection-Id"] = new_id()
    if not socket.can_prepare(request).ok:
        return plain(426, "This is a WebSocket.", "method", "Use a program that speaks ACP.")
    await socket.prepare(request)
    connection = AcpConnection(socket, program, lambda: program_of(request, "acp"))
    try:
        await connection.run()
    finally:
        await connection.close()
    return socket


class AcpConnection:
    """One editor. ``check`` raises ``ReportableError`` once it may not ask any more."""

    def __init__(self, socket: web.WebSocketResponse, program: Program, check: Callable[[], object]) -> None:
        self._socket, self._program, self._check = socket, program, check
        self._at_work = BackgroundTasks("a request of an editor failed")
        self._prompts: dict[str, Turn | None] = {}
        self._sessions: dict[Id | None, str] = {}
        """Of prompts under way, by the ids of their requests."""
        self._cancelled: set[str] = set()
        self._questions: dict[Id, asyncio.Future[Any]] = {}
        self._asked_owner: set[tuple[str, str]] = set()
        self._chosen: dict[str, str] = {}
        self._reads_files = False
        self._owners = OwnersList(program.daemon) if program.control else None
        self._handlers: dict[str, Callable[[RpcCall], Awaitable[dict[str, Any]]]] = {
            "initialize": self._initialize,
            "authenticate": self._nothing,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close_session,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/prompt": self._prompt,
        }

    async def run(self) -> None:
        """Takes messages until the editor goes."""
        async for frame in self._socket:
            if frame.type == WSMsgType.BINARY:
                continue  # the protocol's transport has text alone, and passes over these
            if frame.type != WSMsgType.TEXT:
                return
            try:
                found = jsonrpc.decode(frame.data.encode())
            except RpcError as refusal:
                await self._send(jsonrpc.refused(refusal))
                continue
            if isinstance(found, RpcAnswer):
                self._answered(found)
            elif found.id is None:
                self._notified(found)
            elif len(self._at_work) >= MOST_AT_WORK:
                too_many = RpcError(INVALID_REQUEST, "Too many requests at once.", do="Wait.")
                await self._refuse(too_many, found.id)
            else:
                self._at_work.spawn(self._handle(found, found.id))
                await asyncio.sleep(0)  # it begins first: the next message may cancel it

    async def close(self) -> None:
        """Lets go of what was asked. A prompt goes on: its answer is in the session when it is loaded again."""
        await self._at_work.close()

    async def _handle(self, call: RpcCall, id: Id) -> None:
        try:
            self._check()
            handler = self._handlers.get(call.method)
            if handler is None:
                raise RpcError(
                    METHOD_NOT_FOUND, f"{call.method[:80]} is not served.", do="Look at the capabilities."
                )
            await self._send(jsonrpc.result(id, await handler(call)))
        except RpcError as refusal:
            await self._refuse(refusal, id)
        except ReportableError as found:
            self._program.daemon.programs.seen(self._program, error=found.with_advice())
            number = _NUMBERS.get(found.status, INTERNAL_ERROR)
            await self._refuse(RpcError(number, str(found), data=found.as_json(), do=found.do), id)
        except Exception:
            log.exception("%s failed", call.method[:80])
            await self._refuse(RpcError(INTERNAL_ERROR, "Something went wrong inside.", do="rappd logs"), id)

    async def _refuse(self, refusal: RpcError, id: Id) -> None:
        await self._send(jsonrpc.refused(refusal, id))

    async def _send(self, message: bytes) -> None:
        with suppress(ConnectionError):  # the editor went; what is under way goes on
            await self._socket.send_str(message.decode())

    def _answered(self, answer: RpcAnswer) -> None:
        question = self._questions.pop(answer.id, None)
        if question is not None and not question.done():
            question.set_result(answer.result if answer.error is None else None)

    def _notified(self, call: RpcCall) -> None:
        session, id = call.params.get("sessionId"), call.params.get("requestId")
        if call.method == "$/cancel_request" and jsonrpc.is_id(id):
            session = self._sessions.get(id)
        elif call.method != "session/cancel":
            return
        if isinstance(session, str) and session in self._prompts:
            self._stop(session)

    def _stop(self, session: str) -> None:
        self._cancelled.add(session)
        turn = self._prompts[session]
        if turn is not None and not turn.is_over:
            turn.cancel()
        for question in self._questions.values():
            if not question.done():
                question.set_result(None)

    async def _question(self, write: Callable[[Id], bytes]) -> Any:
        """Asks the editor; None for an error, and where the prompt is cancelled meanwhile."""
        id = f"rappd-{new_id()}"
        question = self._questions[id] = asyncio.get_running_loop().create_future()
        try:
            await self._send(write(id))
            return await question
        finally:
            self._questions.pop(id, None)

    async def _nothing(self, call: RpcCall) -> dict[str, Any]:
        return {}

    async def _initialize(self, call: RpcCall) -> dict[str, Any]:
        if not isinstance(call.params.get("protocolVersion"), int):
            raise RpcError(INVALID_PARAMS, "protocolVersion must be a number.", do="Send 1.")
        self._reads_files = acp.reads_files(call)
        if name := shown_name(acp.client_name(call)):
            self._program = replace(self._program, name=name)
        self._program.daemon.programs.seen(self._program)
        return acp.welcome(__version__)

    async def _new(self, call: RpcCall) -> dict[str, Any]:
        session = acp.new_session(new_id(), acp.absolute_folder(call))
        found = {"sessionId": session, **await self._modes(BRAINSTEM)}
        if call.params.get("mcpServers"):
            notice = "MCP servers of the editor are not used; agents of this machine are."
            await self._send(acp.said(session, "agent_thought_chunk", notice))
        return found

    async def _load(self, call: RpcCall) -> dict[str, Any]:
        session = acp.text_of(call, "sessionId")
        target, thread = await self._known(session)
        found = await self._conversations().show(thread, limit=MOST_REPLAYED)
        for turn in found["turns"]:
            for kind, text in (("user_message_chunk", turn["user"]), ("agent_message_chunk", turn["text"])):
                if text:
                    await self._send(acp.said(session, kind, text))
        return await self._modes(target.id)

    async def _resume(self, call: RpcCall) -> dict[str, Any]:
        target, _ = await self._known(acp.text_of(call, "sessionId"))
        return await self._modes(target.id)

    async def _list(self, call: RpcCall) -> dict[str, Any]:
        wanted = acp.absolute_folder(call) if call.params.get("cwd") is not None else None
        before = jsonrpc.cursor(call)
        rows: list[dict[str, Any]] = []
        while True:
            found = await self._conversations().latest(limit=_LISTED, before=before, everything=True)
            for one in found["conversations"]:
                if isinstance(one["session"], str):
                    folder = acp.folder_of(one["session"]) or str(Path.home())
                    if wanted in (None, folder):
                        rows.append(acp.session_row(one["session"], folder, one["title"], one["updated"]))
            if rows or not found["next"]:  # editors take an empty page for the end
                return {"sessions": rows, **({"nextCursor": found["next"]} if found["next"] else {})}
            moment, _, id = found["next"].partition(".")
            before = int(moment), id

    async def _close_session(self, call: RpcCall) -> dict[str, Any]:
        session = acp.text_of(call, "sessionId")
        if session in self._prompts:
            self._stop(session)
        self._chosen.pop(session, None)
        return {}

    async def _delete(self, call: RpcCall) -> dict[str, Any]:
        session = acp.text_of(call, "sessionId")
        with suppress(RpcError):  # one that is not there, or has no turns yet, is on no list
            _, thread = await self._known(session)
            await self._conversations().remove(thread)
        return {}

    async def _set_mode(self, call: RpcCall) -> dict[str, Any]:
        target = await target_of(self._program, acp.text_of(call, "modeId"))
        session = acp.text_of(call, "sessionId")
        await self._check_session(session)
        if len(self._chosen) >= MOST_REPLAYED:
            self._chosen.pop(next(iter(self._chosen)))
        self._chosen[session] = target.id
        return {}

    async def _prompt(self, call: RpcCall) -> dict[str, Any]:
        session, prompt = acp.text_of(call, "sessionId"), acp.read_prompt(call)
        if session in self._prompts:
            raise RpcError(INVALID_REQUEST, "A prompt of this session is under way.", do="Cancel it first.")
        self._prompts[session], self._sessions[call.id] = None, session
        try:
            await self._check_session(session)
            files = [await self._file(session, uri) for uri in prompt.files]
            await self._ask_owner(session)
            if session in self._cancelled:
                return {"stopReason": "cancelled"}
            text = "\n\n".join(part for part in (prompt.text, *files) if part)
            pictures = checked(prompt.pictures, "images")
            return await self._turn(session, text, pictures, acp.key_of(call))
        finally:
            del self._prompts[session]
            self._sessions.pop(call.id, None)
            self._cancelled.discard(session)

    async def _turn(
        self, session: str, text: str, pictures: list[dict[str, str]], key: str
    ) -> dict[str, Any]:
        target = await self._target(session)
        await self._program.daemon.host.ready.wait()
        history = await earlier(self._program, target, session)
        asked = ChatRequest(text, history, None, self._program.sender, pictures=pictures)
        turn = await begin(self._program, target, asked, id=key or new_id(), session=session)
        self._prompts[session] = turn
        if session in self._cancelled:  # while it was prepared
            turn.cancel()
        updates = Updates(session)
        async for _, event in turn.events():
            try:
                self._check()  # its trust may have ended meanwhile
            except ReportableError:
                turn.cancel()
                raise
            if (update := updates.of(orjson.loads(event))) is not None:
                await self._send(update)
        try:
            reply = await turn.reply()
        except RequestCancelledError:
            if session in self._cancelled:  # before anything of it was written down
                return {"stopReason": "cancelled"}
            raise RefusedError("This machine is stopping.", do="Ask again soon.") from None
        return await self._end(session, reply, updates)

    async def _end(self, session: str, reply: Envelope, updates: Updates) -> dict[str, Any]:
        if reply.verb == ERROR:
            if reply.data.get("reason") == "stopped":
                return {"stopReason": "cancelled"}
            raise RefusedTurnError(reply)
        answer = str(reply.data.get("response", ""))
        if answer and not updates.has_spoken:  # one that came from the record, or all at once
            await self._send(acp.said(session, "agent_message_chunk", answer))
        return {"stopReason": "end_turn"}

    async def _file(self, session: str, uri: str) -> str:
        """A file that a prompt names, read by the editor: this machine opens none for it."""
        if not self._reads_files:
            return uri
        params = {"sessionId": session, "path": unquote(urlsplit(uri).path)}
        found = await self._question(lambda id: jsonrpc.request(id, "fs/read_text_file", params))
        text = found.get("content") if isinstance(found, dict) else None
        return acp.as_file(uri, text[:_MOST_OF_A_FILE]) if isinstance(text, str) else uri

    async def _ask_owner(self, session: str) -> None:
        """Asks for the owner's yes to code that waits for it; an editor that this account started may give it."""
        if self._owners is None:
            return
        for row in await self._owners.rows():
            if (
                row.get("kind") not in ("code", "workflow", "needs")
                or (row["key"], row["sha256"]) in self._asked_owner
            ):
                continue
            self._asked_owner.add((row["key"], row["sha256"]))
            try:
                matter = await self._owners.matter(row["key"])
            except ReportableError:  # answered meanwhile, or too long to be read here
                continue
            shown = {**matter, "text": f"{matter['why']}\n\n{matter['text']}"}
            if acp.is_yes(await self._question(lambda id, shown=shown: acp.permission(id, session, shown))):  # type: ignore[misc]
                outcome = await self._owners.approve(matter["key"], matter["sha256"], self._program.name)
                await self._send(acp.said(session, "agent_thought_chunk", outcome))
            if session in self._cancelled:
                return

    def _conversations(self) -> Conversations:
        return Conversations(self._program.daemon.store, self._program.sender)

    async def _known(self, session: str) -> tuple[Target, str]:
        """The partner and the thread of a session that has turns. Raises ``RpcError``."""
        found = await thread_in(self._program, await targets(self._program), session)
        if found is None:
            raise RpcError(_NOT_FOUND, "There is no such session.", do="Ask for session/list.")
        return found

    async def _check_session(self, session: str) -> None:
        """Raises ``RpcError`` for a session that has no turns and was not made here: another one would be begun unasked."""
        if not acp.is_new_session(session):
            await self._known(session)

    async def _target(self, session: str) -> Target:
        if session in self._chosen:
            return await target_of(self._program, self._chosen[session])
        found = await thread_in(self._program, await targets(self._program), session)
        return found[0] if found is not None else await target_of(self._program, BRAINSTEM)

    async def _modes(self, current: str) -> dict[str, Any]:
        known = await targets(self._program)
        if len(known) < 2:
            return {}
        rows = [{"id": one.id, "name": one.name, "description": one.description} for one in known]
        return {"modes": {"currentModeId": current, "availableModes": rows}}
