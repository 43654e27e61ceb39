"""A program that is read from and written to as a stream, by coroutines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self

from agents.programs import programs

_PIECE = 1 << 18
_LAST_SECONDS = 10.0


class StreamedProgram:
    """One running program. Made by ``start``; ``aclose`` ends it and everything that it started."""

    def __init__(
        self,
        process: programs.RunningProgram,
        output: asyncio.StreamReader,
        errors: asyncio.Task[None],
        given: asyncio.StreamWriter,
        transports: Sequence[asyncio.BaseTransport],
    ) -> None:
        self._process, self._output, self._errors, self._given = process, output, errors, given
        self._transports = transports
        self._code: int | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        on_errors: Callable[[bytes], Awaitable[None]],
        environment: Mapping[str, str] | None = None,
        home: bool = False,
    ) -> Self:
        """Starts it as ``programs.start`` does. ``on_errors`` gets what it writes to its errors, as it comes.

        When ``on_errors`` raises, the output ends, and ``wait`` raises the same.
        """
        loop = asyncio.get_running_loop()
        given_far, given_near = os.pipe()
        output_near, output_far = os.pipe()
        errors_near, errors_far = os.pipe()
        try:
            process = programs.start(
                command,
                environment=environment,
                home=home,
                given=given_far,
                output=output_far,
                errors=errors_far,
            )
        except BaseException:
            for end in (given_near, output_near, errors_near):
                os.close(end)
            raise
        finally:
            for end in (given_far, output_far, errors_far):
                os.close(end)
        output, errors = asyncio.StreamReader(_PIECE), asyncio.StreamReader(_PIECE)
        reading = [
            await loop.connect_read_pipe(
                lambda reader=reader: asyncio.StreamReaderProtocol(reader),  # type: ignore[misc]
                os.fdopen(end, "rb", buffering=0),
            )
            for reader, end in ((output, output_near), (errors, errors_near))
        ]
        writing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()),
            os.fdopen(given_near, "wb", buffering=0),
        )
        given = asyncio.StreamWriter(writing, protocol, None, loop)
        task = asyncio.create_task(_pass_on(errors, on_errors))
        # Nobody reads its errors then: it would wait for that, and its reader for its output.
        task.add_done_callback(
            lambda task: reading[0][0].close() if not task.cancelled() and task.exception() else None
        )
        return cls(process, output, task, given, [transport for transport, _ in reading] + [writing])

    async def read(self) -> bytes:
        """The next piece of its output; b"" at its end."""
        return await self._output.read(_PIECE)

    async def write(self, piece: bytes) -> None:
        """Gives it a piece of its input. Raises ``ConnectionError`` when it reads no more."""
        self._given.write(piece)
        await self._given.drain()

    def end_input(self) -> None:
        """Ends its input."""
        self._given.close()

    async def wait(self) -> int:
        """The program's exit code, once its output was read to the end and its errors are all passed on."""
        if self._code is None:
            await self._errors
            code = await asyncio.to_thread(self._process.wait, _LAST_SECONDS)
            if code is None:
                await self.aclose()
            self._code = -9 if code is None else code
        return self._code

    async def aclose(self) -> None:
        """Ends it. Idempotent."""
        for transport in self._transports:
            if not transport.is_closing():
                transport.abort() if isinstance(transport, asyncio.WriteTransport) else transport.close()
        self._errors.cancel()
        await asyncio.wait({self._errors})
        if self._code is None:
            await asyncio.shield(asyncio.to_thread(self._process.end))
            self._code = -9


async def _pass_on(reader: asyncio.StreamReader, to: Callable[[bytes], Awaitable[None]]) -> None:
    while piece := await reader.read(_PIECE):
        await to(piece)
