"""Reading aiortc, a private part included: these tests say when it is gone; and the end of the process that speaks it."""

from __future__ import annotations

import asyncio
import socket

from aiortc import RTCCertificate, RTCSessionDescription

from rappd.tether.rtc_worker import own_parameters, serve, verified_print
from rappd.tether.webrtc_parameters import description
from tests.rappd.tether.aiortc_client import peer_with


def print_of(certificate: RTCCertificate) -> bytes:
    found = next(one.value for one in certificate.getFingerprints() if one.algorithm == "sha-256")
    return bytes.fromhex(found.replace(":", ""))


async def test_library_tells_the_certificate_that_dtls_verified_on_both_sides() -> None:
    certificates = [RTCCertificate.generateCertificate() for _ in range(2)]
    caller, callee = (peer_with(one) for one in certificates)
    is_open = asyncio.Event()
    caller.createDataChannel("rapp").on("open", is_open.set)
    await caller.setLocalDescription(await caller.createOffer())
    offered = own_parameters(caller, "actpass")
    assert offered.print == print_of(certificates[0]) and offered.candidates
    assert verified_print(caller) == b"", "nothing is verified before"
    await callee.setRemoteDescription(RTCSessionDescription(description(offered), "offer"))
    await callee.setLocalDescription(await callee.createAnswer())
    answered = own_parameters(callee, "active")
    assert answered.print == print_of(certificates[1])
    await caller.setRemoteDescription(RTCSessionDescription(description(answered), "answer"))
    async with asyncio.timeout(100):
        await is_open.wait()
    assert (verified_print(caller), verified_print(callee)) == (answered.print, offered.print)
    await caller.close()
    await callee.close()


async def test_worker_ends_quietly_where_the_daemon_went_without_reading_all() -> None:
    theirs, ours = socket.socketpair()
    serving = asyncio.create_task(serve(ours.detach()))
    await asyncio.to_thread(theirs.recv, 1)  # the rest of what it said stays unread
    theirs.close()
    await asyncio.wait_for(serving, 100)
