"""The way to the provider, with the real CLI: proxies, certificates, and trouble on the way."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import plans
from ways import ForwardingProxy, closed_port, private_ca, tls_to
from windlass.testing.model.script import Book, Script, Status

pytestmark = pytest.mark.e2e

ONE = {"a": ()}
UNRESOLVED = "http://provider.invalid"
"""A name that is reserved to lead nowhere."""


@pytest.fixture
def proxy() -> Iterator[ForwardingProxy]:
    with ForwardingProxy().serving() as serving:
        yield serving


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The CA's, and the server's with its key."""
    return private_ca(tmp_path_factory.mktemp("ca"))


def failing(status: Status) -> Book:
    return Book(scripts={"": Script((status,) * 50)})


def model_requests(play) -> int:
    return sum(seen.path.startswith("/v1/messages") for seen in play.seen)


def said_until(play, text: str, *args: str, **more: str) -> str:
    """What a run says until it says this; then it is stopped."""
    said = ""
    with play.windlass(*args, **more) as process:
        for line in process.stderr:
            said += line
            if re.search(text, line):
                break
        else:
            pytest.fail(f"{text!r} was not said:\n{said}")
        assert play.run("stop", "plan", **more)[0] == 0
        process.communicate(timeout=60)
    return said


class TestProxies:
    @pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
    def test_requests_pass_through_the_users_proxy(self, stage, proxy, name):
        play = stage(plans.files(ONE), plans.book(ONE))
        code, _, err = play.run("run", "plan.md", **{name: proxy.url})
        assert code == 0, err
        assert play.merges() == ["a"]
        assert len(proxy.asked) == model_requests(play) > 0
        assert all(line.startswith(f"POST {play.model_url}/v1/messages") for line in proxy.asked)

    @pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
    def test_what_no_proxy_names_is_reached_directly(self, stage, proxy, name):
        play = stage(plans.files(ONE), plans.book(ONE))
        code, _, err = play.run(
            "run", "plan.md", **{"HTTP_PROXY": proxy.url, name: "example.com,127.0.0.0/8"}
        )
        assert code == 0, err
        assert play.merges() == ["a"]
        assert proxy.asked == []

    def test_https_passes_a_tunnel_and_the_users_ca_is_trusted(self, stage, proxy, certificates):
        authority, server = certificates
        play = stage(plans.files(ONE), plans.book(ONE))
        with tls_to(play.model_url, server) as url:
            code, _, err = play.run(
                "run",
                "plan.md",
                ANTHROPIC_BASE_URL=url,
                HTTPS_PROXY=proxy.url,
                SSL_CERT_FILE=str(authority),
            )
        assert code == 0, err
        assert play.merges() == ["a"]
        place = url.removeprefix("https://")
        assert set(proxy.asked) == {f"CONNECT {place} HTTP/1.1"}
        assert model_requests(play) > 0

    def test_a_proxy_that_wants_a_login_is_said_to_and_gets_one(self, stage):
        play = stage(plans.files(ONE), plans.book(ONE))
        with ForwardingProxy(login="ada:s3cret-pass").serving() as proxy:
            code, _, err = play.run("run", "plan.md", HTTP_PROXY=proxy.url)
            assert code == 3, err
            place = play.model_url.removeprefix("http://")
            assert f"cannot reach {place}: the proxy 127.0.0.1:{proxy.port} (HTTP_PROXY)" in err
            assert "refused (407 Proxy Authentication Required)" in err
            assert model_requests(play) == 0
            login = proxy.url.replace("http://", "http://ada:s3cret-pass@")
            code, _, err = play.run("resume", HTTP_PROXY=login)
        assert code == 0, err
        assert play.merges() == ["a"]
        assert "s3cret-pass" not in err

    def test_a_proxy_that_cannot_be_used_is_refused_before_the_run(self, stage):
        play = stage(plans.files(ONE), plans.book(ONE))
        code, out, err = play.run("run", "plan.md", "--json", ALL_PROXY="socks5://me:pw@localhost")
        assert code == 2
        assert err == (
            "windlass: ALL_PROXY: it names no proxy that Windlass can use; set it to a URL that"
            " begins with http:// or https://, or unset it\n"
        )
        assert json.loads(out.splitlines()[0])["error"]["where"] == "ALL_PROXY"
        assert play.run("log", "plan")[0] == 2, "no run was recorded"


class TestCertificates:
    @pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
    def test_a_private_ca_is_trusted_if_a_variable_names_it(self, stage, certificates, name):
        authority, server = certificates
        play = stage(plans.files(ONE), plans.book(ONE))
        with tls_to(play.model_url, server) as url:
            code, _, err = play.run(
                "run", "plan.md", **{"ANTHROPIC_BASE_URL": url, name: str(authority)}
            )
        assert code == 0, err
        assert play.merges() == ["a"]

    def test_without_it_the_certificate_is_refused_at_once_and_named(self, stage, certificates):
        play = stage(plans.files(ONE), plans.book(ONE))
        with tls_to(play.model_url, certificates[1]) as url:
            code, _, err = play.run("run", "plan.md", ANTHROPIC_BASE_URL=url)
            place = url.removeprefix("https://")
        assert code == 3, err
        assert f"cannot reach {place}: certificate not trusted (" in err
        assert "name the certificate of its authority in SSL_CERT_FILE" in err
        assert "overloaded" not in err
        assert "Retry " not in err, "the agent's program repeats what no repeat can help"
        assert model_requests(play) == 0
        log = play.run("log", "plan")[1]
        assert "certificate not trusted" in log
        task = json.loads(play.run("status", "plan", "--json")[1])["tasks"]["a"]
        assert "certificate not trusted" in json.dumps(task)

    def test_a_file_that_is_not_there_is_refused_before_the_run(self, stage):
        play = stage(plans.files(ONE), plans.book(ONE))
        more = {"ANTHROPIC_BASE_URL": "https://127.0.0.1:9", "SSL_CERT_FILE": "/nonexistent/ca.pem"}
        code, _, err = play.run("run", "plan.md", **more)
        assert code == 2
        assert err.startswith(
            "windlass: SSL_CERT_FILE: /nonexistent/ca.pem cannot be used: No such"
        )


class TestTrouble:
    def test_a_name_that_does_not_resolve_is_said_in_every_view(self, stage):
        play = stage(plans.files(ONE), plans.book(ONE))
        more = {"ANTHROPIC_BASE_URL": UNRESOLVED}
        why = "cannot reach provider.invalid: name not found"
        said = said_until(play, r" WAIT ", "run", "plan.md", **more)
        assert re.search(rf"Retry 1 in [\d.]+ s \({why}", said)
        assert re.search(rf"FAILED  a Write a.txt · transient · turn 1 goes on\n\s+{why}", said)
        assert re.search(rf"WAIT  a Write a.txt · {why}.* · until", said)
        assert "overloaded" not in said
        assert "503" not in said
        assert why in play.run("log", "plan")[1]
        events = [json.loads(line)["event"] for line in play.run("log", "--json")[1].splitlines()]
        failed = next(event for event in events if event["type"] == "PlayerFailed")
        assert failed["failure"] == "transient"
        assert failed["unreached"] is True
        assert failed["message"].startswith(why)

    def test_a_port_on_which_nothing_listens_is_said_to_refuse(self, stage):
        port = closed_port()
        play = stage(plans.files(ONE), plans.book(ONE))
        said = said_until(
            play, r"Retry 1 ", "run", "plan.md", ANTHROPIC_BASE_URL=f"http://127.0.0.1:{port}"
        )
        assert f"(cannot reach 127.0.0.1:{port}: connection refused)" in said

    def test_a_proxy_that_is_not_there_is_named_with_its_variable(self, stage):
        port = closed_port()
        play = stage(plans.files(ONE), plans.book(ONE))
        said = said_until(
            play, r"Retry 1 ", "run", "plan.md", http_proxy=f"http://127.0.0.1:{port}"
        )
        place = play.model_url.removeprefix("http://")
        proxy = f"the proxy 127.0.0.1:{port} (http_proxy)"
        assert f"(cannot reach {place}: {proxy}: connection refused)" in said

    def test_a_wrong_key_is_said_at_once_with_its_variable(self, stage):
        play = stage(plans.files(ONE), failing(Status(401, "authentication_error")))
        code, _, err = play.run("run", "plan.md")
        assert code == 6, err
        assert "the provider refused the credentials in ANTHROPIC_API_KEY (HTTP 401)" in err
        assert "Retry " not in err
        assert sum(not seen.side for seen in play.seen) == 1, "the agent's program tried again"
        assert "ANTHROPIC_API_KEY" in play.run("status", "plan")[1]
        assert "ANTHROPIC_API_KEY" in play.run("log", "plan")[1]

    def test_another_variable_with_the_key_is_named_too(self, stage):
        play = stage(plans.files(ONE), failing(Status(401, "authentication_error")))
        code, _, err = play.run(
            "run", "plan.md", ANTHROPIC_API_KEY="", ANTHROPIC_AUTH_TOKEN="wrong-dummy-token"
        )
        assert code == 6, err
        assert "the provider refused the credentials in ANTHROPIC_AUTH_TOKEN (HTTP 401)" in err

    @pytest.mark.parametrize(
        ("args", "more", "toml", "field", "source"),
        [
            (("--model", "nosuch-1"), {}, "", "", "option --model"),
            ((), {"WINDLASS_MODEL": "nosuch-1"}, "", "", "WINDLASS_MODEL"),
            ((), {}, 'model = "nosuch-1"\n', "", "windlass.toml"),
            ((), {}, "", "**Model:** nosuch-1\n", "**Model:** of task a, plan.md:3"),
        ],
        ids=["option", "variable", "file", "task"],
    )
    def test_an_unknown_model_is_named_with_what_set_it(
        self, stage, args, more, toml, field, source
    ):
        files = plans.files(ONE)
        files["windlass.toml"] += toml
        files["plan.md"] = files["plan.md"].replace("**Depends on:**", f"{field}**Depends on:**")
        play = stage(files, failing(Status(404, "not_found_error")))
        code, _, err = play.run("run", "plan.md", *args, **more)
        assert code == 3, err
        assert f"the provider has no model 'nosuch-1', set by {source} (HTTP 404)" in err
        assert "Retry " not in err
