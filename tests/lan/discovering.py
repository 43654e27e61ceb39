"""A machine's discovery as a process: ``discovering.py FOLDER NAME FINGERPRINT PORT [PEER …]``.

It announces itself, answers at PORT with its fingerprint, and watches the peers. It prints a JSON object a line:
``{"t": seconds since 1970, "event", …}``. Lines on standard input: ``rename NAME``, ``state``, ``close``.
It asks after peers, and tries again after trouble, more often than a daemon, so that tests wait less.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from neighborhoods.discovery.discovered_nodes import Change, DiscoveredNode, DiscoveredNodes
from neighborhoods.discovery.mdns_service import MdnsService
from neighborhoods.discovery.peer_address_order import AddressResolver
from neighborhoods.discovery.peers_file import PeersFile
from neighborhoods.discovery.presence import Presence, ProbePolicy

HERE = 7.0
PACE = ProbePolicy(every=3.0, here=HERE, first=2.0)
RETRY = 6.0


def say(event: str, **more: Any) -> None:
    print(json.dumps({"t": time.time(), "event": event, **more}), flush=True)


async def main(folder: str, name: str, fingerprint: str, port: str, *peers: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(fingerprint.encode())
        await writer.drain()
        writer.close()

    async def probe(peer: str) -> float:
        began = time.monotonic()
        for candidate in await resolver.candidates(peer, last.get(peer, "")):
            host, number = candidate.address.rsplit(":", 1)
            try:
                async with asyncio.timeout(2):
                    reader, writer = await asyncio.open_connection(host.strip("[]"), int(number))
                    found = (await reader.read()).decode()
                    writer.close()
            except (OSError, TimeoutError):
                continue
            resolver.learn(candidate.address, found)
            if found == peer:
                last[peer] = candidate.address
                return (time.monotonic() - began) * 1000
        raise OSError("no way led to it")

    def sighted(change: Change, sighting: DiscoveredNode) -> None:
        if change != "heard":
            more = {"addresses": sighting.addresses, "port": sighting.port}
            say(change, peer=sighting.fingerprint, name=sighting.name, **more)

    last: dict[str, str] = {}
    sightings = DiscoveredNodes()
    sightings.listen(sighted)
    nearby = MdnsService(sightings, name=name, fingerprint=fingerprint, port=int(port), retry=RETRY)
    resolver = AddressResolver(sightings, PeersFile(Path(folder) / "peers.json"), nearby)
    presence = Presence(probe, changed=lambda peer, state: say(state, peer=peer), pace=PACE)
    sightings.listen(presence.on_sighting)
    sightings.pin(peers)
    server = await asyncio.start_server(answer, "", int(port))
    nearby.start()
    presence.start()
    for peer in peers:
        presence.watch(peer)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    say("started")
    telling = asyncio.create_task(tell(nearby))
    while line := (await lines.readline()).decode().split():
        if line[0] == "rename":
            nearby.announce(name=line[1])
        elif line[0] == "state":
            sources = {source.source: [source.found, source.trouble] for source in await resolver.sources()}
            say("state", sources=sources, presence={peer: presence.presence(peer) for peer in peers})
        elif line[0] == "close":
            break
    telling.cancel()
    began = time.monotonic()
    await nearby.close()
    say("closed", seconds=time.monotonic() - began)
    await presence.close()
    server.close()


async def tell(nearby: MdnsService) -> None:
    """Says when the announced name or the trouble changes."""
    before = ("", "")
    while True:
        if before != (nearby.instance, nearby.trouble):
            before = (nearby.instance, nearby.trouble)
            say("announced", instance=before[0], trouble=before[1])
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
