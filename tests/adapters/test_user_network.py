"""The proxies and certificates of the user's environment, as other programs read them."""

import ssl
from pathlib import Path

import pytest

from ways import private_ca
from windlass.adapters.user_network import UserNetwork
from windlass.errors import ConfigError

P, Q = "http://p.example:3128", "http://q.example:8080"


def way(host: str = "api.example", scheme: str = "https", port: int = 443, **env: str) -> str:
    """The variable of the proxy to that host; empty if it is reached directly."""
    proxy = UserNetwork(env).proxy_for(scheme, host, port)
    return "" if proxy is None else f"{proxy.variable} {proxy.host}:{proxy.port}"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, ""),
        ({"HTTPS_PROXY": P}, "HTTPS_PROXY p.example:3128"),
        ({"https_proxy": P, "HTTPS_PROXY": Q}, "https_proxy p.example:3128"),
        ({"https_proxy": "", "HTTPS_PROXY": Q}, ""),
        ({"HTTPS_PROXY": P, "ALL_PROXY": Q}, "HTTPS_PROXY p.example:3128"),
        ({"all_proxy": Q}, "all_proxy q.example:8080"),
        ({"HTTP_PROXY": P}, ""),
        ({"HTTPS_PROXY": "p.example:3128"}, "HTTPS_PROXY p.example:3128"),
        ({"HTTPS_PROXY": "https://p.example"}, "HTTPS_PROXY p.example:443"),
    ],
)
def test_the_variable_that_counts(env: dict[str, str], expected: str):
    assert way(**env) == expected


@pytest.mark.parametrize(
    ("entry", "host", "direct"),
    [
        ("*", "api.example", True),
        ("api.example", "api.example", True),
        ("API.example", "api.EXAMPLE", True),
        ("example", "api.example", True),
        (".example", "api.example", True),
        ("*.example", "api.example", True),
        ("other.test, example", "api.example", True),
        ("other.test example", "api.example", True),
        ("ample", "api.example", False),
        ("api.example:443", "api.example", True),
        ("api.example:8443", "api.example", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1:443", "127.0.0.1", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("::1", "::1", True),
        ("fd00::/8", "fd00::5", True),
        ("localhost", "localhost", True),
        ("", "api.example", False),
    ],
)
def test_what_no_proxy_covers(entry: str, host: str, direct: bool):  # noqa: FBT001
    assert (way(host, HTTPS_PROXY=P, NO_PROXY=entry) == "") is direct
    assert (way(host, HTTPS_PROXY=P, no_proxy=entry, NO_PROXY="*") == "") is direct


def test_a_login_is_used_and_never_shown():
    proxy = UserNetwork({"HTTPS_PROXY": "http://me%40work:p%3Aw@p.example:1"}).proxy_for(
        "https", "h", 443
    )
    assert proxy is not None
    assert proxy.login == ("me@work", "p:w")
    assert proxy.address == "http://p.example:1"
    assert str(proxy) == "the proxy p.example:1 (HTTPS_PROXY)"


@pytest.mark.parametrize(
    "value", ["socks5://p:1", "http://", "http://p:port", "http://[::1", "ftp://p"]
)
def test_a_proxy_that_cannot_be_used_is_an_error_and_not_passed_by(value: str):
    with pytest.raises(ConfigError, match="ALL_PROXY: it names no proxy") as caught:
        way(ALL_PROXY=value)
    assert caught.value.where == "ALL_PROXY"


def trusted(**env: str) -> int:
    return UserNetwork(env).tls().cert_store_stats()["x509_ca"]


def test_certificates_replace_the_systems_or_are_added(tmp_path: Path):
    authority, _ = private_ca(tmp_path / "ca")
    system = trusted()
    assert trusted(SSL_CERT_FILE=str(authority)) == 1
    assert trusted(NODE_EXTRA_CA_CERTS=str(authority)) == system + 1
    assert trusted(SSL_CERT_FILE=str(authority), REQUESTS_CA_BUNDLE=str(authority)) == 1
    context = UserNetwork({"SSL_CERT_DIR": str(tmp_path)}).tls()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_certificates_that_cannot_be_read_are_an_error(tmp_path: Path):
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing\n")
    network = UserNetwork({"SSL_CERT_FILE": str(broken)})
    with pytest.raises(
        ConfigError, match=r"SSL_CERT_FILE: .*broken.pem cannot be used: it holds no"
    ):
        network.tls()
    with pytest.raises(ConfigError):
        network.refuse_unusable("https://api.example")
    network.refuse_unusable("http://api.example")
