"""Which hosts a box may reach."""  # B20

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.hosts import BadHost, HostEntry, is_public, parse, why_refused

PUBLIC = "93.184.216.34"


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("example.org", HostEntry("example.org")),
        (" Example.ORG ", HostEntry("example.org")),
        ("*.example.org", HostEntry("*.example.org")),
        ("localhost:5432", HostEntry("localhost", 5432)),
        ("127.0.0.1:5432", HostEntry("127.0.0.1", 5432)),
        ("[::1]:80", HostEntry("::1", 80)),
        ("[::1]", HostEntry("::1")),
        ("::1", HostEntry("::1")),
        ("my_host", HostEntry("my_host")),
    ],
)
def test_an_entry_is_a_host_with_or_without_a_port(text: str, entry: HostEntry):
    assert parse(text) == entry
    assert parse(str(entry)) == entry


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.", "a b", "http://x", "x/y", "-x", "x-", "x:0", "x:65536", "a..b", "x:y", "[::1]x",
     "a" * 64, ".".join(["a" * 60] * 5), "x\ny", "ü.example"],
)  # fmt: skip
def test_what_names_no_host_is_refused(text: str):
    with pytest.raises(BadHost, match=r"host name|port"):
        parse(text)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1",  # noqa: S104
        "169.254.169.254", "100.64.0.1", "192.0.2.1", "224.0.0.1", "255.255.255.255", "::1", "::",
        "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "127.1", "not an address",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2", "240.0.0.1",
    ],
)  # fmt: skip
def test_addresses_of_this_machine_and_its_network_are_not_public(address: str):
    assert not is_public(address)
    refused = why_refused(
        "example.org", 443, [PUBLIC, address], [HostEntry("example.org")], "public"
    )
    assert refused == f"{address} is not a public address"


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_addresses_of_the_internet_are_public(address: str):
    assert is_public(address)


def test_a_name_allows_its_public_addresses_and_no_others():
    listed = [parse("example.org"), parse("*.example.com")]

    def refused(host: str, *addresses: str) -> str | None:
        return why_refused(host, 443, addresses or (PUBLIC,), listed, "listed")

    assert refused("example.org") is None
    assert refused("EXAMPLE.org.") is None
    assert refused("a.b.example.com") is None
    assert refused("example.com") == "it is not in [sandbox] hosts"
    assert refused("notexample.com") == "it is not in [sandbox] hosts"
    assert refused("example.org.evil.net") == "it is not in [sandbox] hosts"
    assert refused("example.org", "10.0.0.1") == "10.0.0.1 is not a public address"


def test_a_host_with_a_port_is_allowed_wherever_it_lies_and_at_that_port_alone():
    listed = [parse("localhost:5432"), parse("10.0.0.7:80")]

    assert why_refused("localhost", 5432, ["127.0.0.1"], listed, "listed") is None
    assert why_refused("10.0.0.7", 80, ["10.0.0.7"], listed, "listed") is None
    assert why_refused("localhost", 5433, ["127.0.0.1"], listed, "listed") is not None
    assert why_refused("localhost", 5433, ["127.0.0.1"], listed, "public") is not None


def test_public_reach_is_any_public_address():
    assert why_refused("anything.example", 443, [PUBLIC], [], "public") is None
    assert why_refused("anything.example", 443, [PUBLIC], [], "listed") is not None
    assert why_refused("anything.example", 443, [], [], "public") is None


@pytest.mark.parametrize(
    ("text", "loopback"),
    [("localhost:1", True), ("127.0.0.1:1", True), ("[::1]:1", True), ("10.0.0.1:1", False),
     ("example.org", False)],
)  # fmt: skip
def test_loopback_is_told_by_name_and_by_address(text: str, loopback: bool):  # noqa: FBT001
    assert parse(text).is_loopback is loopback


@given(st.ip_addresses())
def test_a_public_address_is_never_one_that_routers_keep_local(address: object):
    if is_public(str(address)):
        refused = [address.is_private, address.is_loopback, address.is_link_local]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        assert not any(refused)  # pyright: ignore[reportUnknownArgumentType]
