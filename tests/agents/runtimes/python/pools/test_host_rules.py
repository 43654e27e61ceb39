"""The hosts that declared needs admit, as a table: names, ports, and the addresses behind names."""

from __future__ import annotations

import pytest

from agents.runtimes.python.network.host_rules import HostRules


@pytest.mark.parametrize(
    ("servers", "host", "port", "admitted"),
    [
        pytest.param(["example.com"], "example.com", 443, True, id="name"),
        pytest.param(["example.com"], "EXAMPLE.com.", 80, True, id="spelled otherwise"),
        pytest.param(["example.com"], "example.com", 22, False, id="no port of the web"),
        pytest.param(["example.com:22"], "example.com", 22, True, id="named port"),
        pytest.param(["example.com:22"], "example.com", 443, False, id="named port alone"),
        pytest.param(["example.com"], "www.example.com", 443, False, id="below a name"),
        pytest.param(["*.example.com"], "a.b.example.com", 443, True, id="below a star"),
        pytest.param(["*.example.com"], "example.com", 443, False, id="star itself"),
        pytest.param(["*.example.com"], "evilexample.com", 443, False, id="star without a dot"),
        pytest.param(["*"], "anything.org", 443, True, id="every host"),
        pytest.param(["10.1.2.3:8080"], "10.1.2.3", 8080, True, id="address"),
        pytest.param(["[::1]:8080"], "::1", 8080, True, id="address of IPv6"),
        pytest.param([], "example.com", 443, False, id="none"),
    ],
)
def test_admitted_hosts(servers: list[str], host: str, port: int, admitted: bool) -> None:
    assert HostRules(servers).admits(host, port) is admitted


@pytest.mark.parametrize(
    ("servers", "host", "address", "allowed"),
    [
        pytest.param(["example.com"], "example.com", "93.184.215.14", True, id="public"),
        pytest.param(["example.com"], "example.com", "127.0.0.1", False, id="name that leads here"),
        pytest.param(["example.com"], "example.com", "192.168.1.4", False, id="name that leads home"),
        pytest.param(["example.com"], "example.com", "169.254.169.254", False, id="cloud's metadata"),
        pytest.param(["example.com"], "example.com", "::ffff:10.0.0.1", False, id="mapped"),
        pytest.param(["example.com"], "example.com", "64:ff9b::a00:1", False, id="translated"),
        pytest.param(["*"], "192.168.1.4", "192.168.1.4", False, id="every host is public"),
        pytest.param(["192.168.1.4"], "192.168.1.4", "192.168.1.4", True, id="named address"),
        pytest.param(["localhost:1"], "localhost", "127.0.0.1", True, id="localhost"),
        pytest.param(["localhost:1"], "localhost", "10.0.0.1", False, id="localhost elsewhere"),
        pytest.param(["nas.local"], "nas.local", "192.168.1.4", True, id="name at home"),
        pytest.param(["nas.local"], "nas.local", "127.0.0.1", False, id="name at home that leads here"),
        pytest.param(["*"], "nas.local", "192.168.1.4", False, id="every host and a name at home"),
    ],
)
def test_allowed_addresses(servers: list[str], host: str, address: str, allowed: bool) -> None:
    assert HostRules(servers).allows(host, address) is allowed
