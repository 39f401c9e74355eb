"""Ways to a server on loopback: a forwarding proxy that counts, and TLS with a private CA."""

import base64
import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

HOST = "127.0.0.1"
LONGEST_HEAD = 64 * 1024


class ForwardingProxy:
    """A proxy that tunnels (CONNECT) and forwards (`POST http://…`), and keeps what it was asked.

    With a login, it answers 407 to requests without it.
    """

    def __init__(self, login: str = "") -> None:
        self._login = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self.asked: list[str] = []
        """The first line of each request, also of those that were refused."""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @contextmanager
    def serving(self) -> Generator["ForwardingProxy"]:
        with _listening(self._serve) as port:
            self.port = port
            yield self

    def _serve(self, client: socket.socket) -> None:
        head, rest = _read_head(client)
        first, *headers = head.decode("latin-1").split("\r\n")
        self.asked.append(first)
        given = {
            name.lower(): value.strip() for name, _, value in (h.partition(":") for h in headers)
        }
        if self._login and given.get("proxy-authorization") != self._login:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n")
            client.sendall(b"content-length: 0\r\nconnection: close\r\n\r\n")
            return
        method, target, _ = first.split(" ")
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        with socket.create_connection((parts.hostname or "", parts.port or 80)) as server:
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                server.sendall(rest)
            else:
                # One request per connection, so that each is counted.
                kept = [h for h in headers if not h.lower().startswith(("connection:", "proxy-"))]
                path = parts._replace(scheme="", netloc="").geturl()
                lines = (f"{method} {path} HTTP/1.1", *kept, "Connection: close", "", "")
                server.sendall("\r\n".join(lines).encode("latin-1") + rest)
            _both_ways(client, server)


@contextmanager
def tls_to(url: str, certificate: Path) -> Generator[str]:
    """Serve TLS with that certificate, and forward what it carries to the server at `url`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    port = urlsplit(url).port or 80

    def serve(client: socket.socket) -> None:
        with (
            context.wrap_socket(client, server_side=True) as plain,
            socket.create_connection((HOST, port)) as server,
        ):
            _both_ways(plain, server)

    with _listening(serve) as mine:
        yield f"https://{HOST}:{mine}"


def private_ca(folder: Path) -> tuple[Path, Path]:
    """A new CA's certificate, and a certificate that it signed for 127.0.0.1, with its key."""

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

    folder.mkdir(exist_ok=True)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem",
            "-subj", "/CN=A private CA", "-days", "2")  # fmt: skip
    openssl("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=loopback")
    (folder / "names").write_text(f"subjectAltName=IP:{HOST},DNS:localhost\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-extfile", "names", "-out", "server.crt", "-days", "2")  # fmt: skip
    both = folder / "server.pem"
    both.write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())
    return folder / "ca.pem", both


def closed_port() -> int:
    """A port of loopback on which nothing listens."""
    with socket.create_server((HOST, 0)) as taken:
        return taken.getsockname()[1]


@contextmanager
def _listening(serve: Callable[[socket.socket], None]) -> Generator[int]:
    """Serve each connection in its own thread, until the block ends."""
    with ExitStack() as stack, socket.create_server((HOST, 0)) as listener:

        def one(client: socket.socket) -> None:
            with client, contextlib.suppress(OSError, ValueError):
                serve(client)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    stack.callback(_hang_up, client)
                    threading.Thread(target=one, args=(client,), daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    text = b""
    while b"\r\n\r\n" not in text and len(text) < LONGEST_HEAD:
        part = client.recv(4096)
        if not part:
            raise ValueError("no request")
        text += part
    head, _, rest = text.partition(b"\r\n\r\n")
    return head, rest


def _both_ways(one: socket.socket, other: socket.socket) -> None:
    back = threading.Thread(target=_pour, args=(other, one), daemon=True)
    back.start()
    _pour(one, other)
    back.join()


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
    _hang_up(sink)
    _hang_up(source)
