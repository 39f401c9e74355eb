"""The network of a box, from inside real boxes: what it reaches, and what it does not."""  # B20

import contextlib
import os
import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest

from ways import private_ca, tls_to
from windlass.adapters.sandbox.box import Asked, Box
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.commands import Finished, run
from windlass.adapters.sandbox.network import PROXY_PORT, ForwardingProxy, WaysOut

PATH = "/usr/local/bin:/usr/bin:/bin"
ASK = "curl -sS --max-time 20 -o /dev/null -w '%{http_code}'"

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


class Page(BaseHTTPRequestHandler):
    """Answers with what it was asked, and remembers it."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Answer."""
        self.seen.append(f"{self.requestline} | {self.headers.get('host')}")
        body = self.path.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def page() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Page)
    Page.seen.clear()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


class World:
    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.home.mkdir()
        (root / "checkout").mkdir()
        self.checkout = root / "checkout"
        self.root = root
        self.asked: list[Asked] = []

    def ways_out(self, *hosts: str, environment: dict[str, str] | None = None) -> WaysOut:
        made = WaysOut(hosts, environment or {})
        made.tell = self.asked.append
        return made

    def run(self, script: str, ways_out: WaysOut, **box: Any) -> Finished:
        sandbox = Bubblewrap(
            home=self.home,
            repository=self.root / "repository",
            path=PATH,
            environment={},
            marker=f"test-{os.getpid()}",
            ways_out=ways_out,
        )
        if reason := sandbox.probe():
            pytest.skip(f"bubblewrap does not work here: {reason}")
        made = Box(checkout=self.checkout, **{"network": True, **box})
        job = partial(run, sandbox, made, ["sh", "-c", script], timeout=60, tail=10_000)
        return anyio.run(job)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_service_that_is_named_with_its_port_is_there_on_the_boxs_own_loopback(
    world: World, page: int
):
    script = f"{ASK} http://127.0.0.1:{page}/a; {ASK} http://localhost:{page}/b"

    assert world.run(script, world.ways_out(f"localhost:{page}")).output == "200200"
    assert len(Page.seen) == 2


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:{page}", "localhost:{page}", "[::1]:{page}", "0.0.0.0:{page}", "127.1:{page}",
     "2130706433:{page}", "0x7f000001:{page}", "[::ffff:127.0.0.1]:{page}", "localhost.:{page}",
     "LOCALHOST:{page}", "169.254.169.254:80", "10.0.0.1:80", "0177.0.0.1:{page}"],
)  # fmt: skip
@pytest.mark.parametrize("reach", ["listed", "public"])
def test_nothing_of_this_machine_or_its_network_is_reached_by_any_name(
    world: World, page: int, address: str, reach: str
):
    target = address.format(page=page)
    proxy = f"http://127.0.0.1:{PROXY_PORT}"
    script = (
        f"{ASK} --noproxy '' -x {proxy} 'http://{target}/'; echo;"
        f"{ASK} --noproxy '' -p -x {proxy} 'http://{target}/' 2>&1 | tail -c 60; echo;"
        f"{ASK} --noproxy '*' 'http://{target}/' 2>&1"
    )

    done = world.run(script, world.ways_out(), reach=reach)

    assert "200" not in done.output
    assert Page.seen == []


def test_what_was_refused_is_told_with_whom_it_was_refused(world: World, page: int):
    script = f"{ASK} https://one.example/; {ASK} http://two.example:81/; {ASK} http://one.example/"

    world.run(script, world.ways_out(), task="1.1", role="player")

    refused = ("one.example", "two.example:81")
    assert world.asked == [Asked(task="1.1", role="player", refused=refused)]


def test_a_box_without_network_has_no_proxy(world: World):
    done = world.run("env; cat /proc/net/tcp | wc -l", world.ways_out(), network=False)

    assert "proxy" not in done.output.lower()
    assert done.output.splitlines()[-1] == "1", "nothing listens"


def test_a_proxy_with_tls_is_used_with_the_users_certificates(world: World, page: int):
    authority, server = private_ca(world.root / "ca")
    with tls_to(f"http://127.0.0.1:{page}", server) as url:
        environment = {"http_proxy": url, "SSL_CERT_FILE": str(authority)}
        listed = world.ways_out("anything.example", environment=environment)
        done = world.run(f"{ASK} http://anything.example/x", listed)
        assert done.output == "200"
        assert Page.seen == ["GET http://anything.example/x HTTP/1.1 | anything.example"]
        listed = world.ways_out("anything.example", environment={"http_proxy": url})
        assert world.run(f"{ASK} http://anything.example/x", listed).output == "502"
        assert len(Page.seen) == 1, "a certificate that is not trusted leads nowhere"


def test_a_proxy_that_cannot_be_used_is_not_passed_by(world: World, page: int):
    listed = world.ways_out(
        f"localhost:{page}", "direct.example", environment={"ALL_PROXY": "socks5://127.0.0.1:1"}
    )
    done = world.run("curl -sS --max-time 20 http://direct.example/", listed)
    assert "ALL_PROXY: it names no proxy that Windlass can use" in done.output


def test_the_users_own_proxy_is_used_behind_the_boxs(world: World, page: int):
    """A company's machines reach nothing but their proxy; `Page` plays it here."""
    environment = {"http_proxy": f"http://me:secret@127.0.0.1:{page}", "NO_PROXY": "direct.test"}

    done = world.run(
        f"{ASK} http://anything.example/x; {ASK} http://other.example/",
        world.ways_out("anything.example", environment=environment),
    )

    assert done.output == "200403"
    assert Page.seen == ["GET http://anything.example/x HTTP/1.1 | anything.example"]


def test_setup_may_reach_any_public_host_and_agents_then_may_too(world: World, page: int):
    environment = {"http_proxy": f"http://127.0.0.1:{page}"}
    ways_out = world.ways_out(environment=environment)
    ask = f"{ASK} http://packages.example/x"

    assert world.run(ask, ways_out, role="player").output == "403"
    assert world.run(ask, ways_out, role="setup", reach="public").output == "200"
    assert world.run(ask, ways_out, role="player").output == "200"

    assert [asked.reached for asked in world.asked] == [(), ("packages.example",)]


def test_a_box_that_cannot_be_built_says_why(world: World):
    world.checkout.rmdir()
    done = world.run("true", world.ways_out())

    assert not done.started


async def _odd(sent: bytes, *, then_close: bool = True) -> bytes:
    class Rule:
        def refuse(self, host: str, port: int, addresses: Sequence[str] | None) -> str | None:
            return f"no {host} {port} {addresses}"

    proxy = ForwardingProxy(Rule(), {})
    ours, theirs = socket.socketpair()
    server = await anyio.abc.SocketStream.from_socket(theirs)
    client = await anyio.abc.SocketStream.from_socket(ours)
    answer = b""
    async with anyio.create_task_group() as tasks, client:
        tasks.start_soon(proxy.serve, server)
        await client.send(sent)
        if then_close:
            await client.send_eof()
        with contextlib.suppress(anyio.BrokenResourceError):
            async for chunk in client:
                answer += chunk
    return answer


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (b"\x16\x03\x01\x02\x00\x01\x00", b"400"),
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"GET ftp://x/ HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"GET https://x/ HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"CONNECT x HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"CONNECT x:0 HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"CONNECT x:99999 HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"CONNECT [::1 HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nhost: x\r\n\r\n", b"403"),
        (b"CONNECT \xff\xfe:80 HTTP/1.1\r\nhost: x\r\n\r\n", b"400"),
        (b"GET http://" + b"a" * 70_000 + b"/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://a/ HTTP/1.1\r\nhost: b\r\nhost: c\r\n\r\n", b"400"),
        (b"GET http://\r\n\r\n", b"400"),
    ],
)
@pytest.mark.anyio
async def test_odd_requests_are_answered_and_end_nothing(sent: bytes, status: bytes):
    answer = await _odd(sent)

    assert answer[9:12] == status
