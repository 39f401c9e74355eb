"""No secret is written down, and nothing else is lost."""

import base64
import hashlib
import json
import re
import textwrap
import urllib.parse
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, inspect, structs

from strategies import EVENT_TYPES, events, instances
from windlass.core.events import codec
from windlass.core.events.model import (
    CheckResult,
    ChecksFinished,
    Event,
    MergeConflicted,
    Outcome,
    RunStarted,
    SnapshotTaken,
)
from windlass.core.events.review import PlayerAnswer, Review
from windlass.core.plan import Plan, Task
from windlass.core.secrets import KEPT, MIN_LENGTH, MIN_LINE, Redactor, redacted, without_secrets
from windlass.core.settings import (
    MASK,
    NotifySettings,
    SandboxSettings,
    Settings,
    is_secret,
    leaves,
)
from windlass.views.pull_request import Draft

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
SECRET = "sk-ant-12345678"
REDACTOR = Redactor({"ANTHROPIC_API_KEY": SECRET})
BLOT = "[redacted ANTHROPIC_API_KEY]"


@pytest.mark.parametrize(
    "name", ["ANTHROPIC_API_KEY", "github_token", "MySecretThing", "PGPASSWORD"]
)
def test_a_secret_is_known_by_its_variables_name(name: str):  # S13
    assert Redactor({name: SECRET}).text(f"a {SECRET} b") == f"a [redacted {name}] b"


@pytest.mark.parametrize("name", [
    "GITHUB_PAT", "PAT", "SENTRY_DSN", "GCP_CREDENTIALS", "AWS_CREDENTIAL_BLOB", "SSH_PASSPHRASE",
    "APP_PRIVATE_PEM", "PRIVATE", "REGISTRY_AUTH", "AUTH", "npm_config__auth", "CI_JOB_JWT",
    "DB_PASS", "DB_PASSWD", "MYSQL_PWD", "REDIS_CREDS", "BEARER", "DEPLOY_HOOK_URL",
])  # fmt: skip
def test_other_names_give_a_secret_away_too(name: str):  # S13
    assert Redactor({name: SECRET}).text(f"a {SECRET} b") == f"a [redacted {name}] b"


@pytest.mark.parametrize(("name", "value"), [
    ("PATTERN", SECRET), ("GOPRIVATE", "github.com/windlass/*"), ("XAUTHORITY", SECRET),
    ("OLDPWD", "/home/someone/work"), ("PWD", "/home/someone/work"), ("SPATIAL", SECRET),
    ("GOOGLE_APPLICATION_CREDENTIALS", "/home/someone/key.json"),
    ("SSH_AUTH_SOCK", "/run/ssh-XXXX/agent.17"), ("AUTH_URL", "https://auth.example.com/oauth"),
    ("REGISTRY_URL", "https://registry.example.com/@scope/name"),
    ("GIT_SSH_URL", "ssh://git@host/x"), ("POSTGRES_HOST_AUTH_METHOD", "password"),
    ("OAUTH_FLOW", "device-code"), ("PRIVATE_MODE", "disabled"),
])  # fmt: skip
def test_paths_addresses_and_other_words_are_no_secrets(name: str, value: str):
    assert Redactor({name: value}).text(f"a {value} b") == f"a {value} b"


@pytest.mark.parametrize("name", ["DATABASE_URL", "HTTPS_PROXY", "ANYTHING", "SENTRY_DSN"])
@pytest.mark.parametrize("url", [
    "postgres://user:p%40ss%2Fword9@db.example/app", "https://p%40ss%2Fword9-0000@sentry.example/12",
    "first=1 amqp://user:p%40ss%2Fword9@queue,redis://h/0",
])  # fmt: skip
def test_what_signs_in_inside_a_url_is_a_secret_whatever_it_is_called(name: str, url: str):
    password = "p%40ss%2Fword9" if ":p%" in url else "p%40ss%2Fword9-0000"
    redactor = Redactor({name: url})
    blot = f"[redacted {name}]"
    for said in (password, urllib.parse.unquote(password)):
        assert redactor.text(f"a {said} b") == f"a {blot} b"
    login = base64.b64encode(f"user:{urllib.parse.unquote(password)}".encode()).decode()
    assert urllib.parse.unquote(password)[3:] not in redactor.text(f"Basic {login}")
    assert blot in redactor.text(f"Basic {login}")


@pytest.mark.parametrize("name", ["AUTH_PASS", "OAUTH_PASSPHRASE", "PRIVATE_PASSWORD", "PAT"])
def test_a_word_can_be_a_password(name: str):
    assert Redactor({name: "hunterhunter"}).text("hunterhunter") == f"[redacted {name}]"


def test_a_short_password_is_no_secret_by_itself():
    redactor = Redactor({"DATABASE_URL": "postgres://u:pw@h/app", "B": "x://user:@host"})
    assert redactor.text("postgres://u:pw@h/app pw") == "[redacted DATABASE_URL] pw"
    assert redactor.text("x://user:@host") == "x://user:@host"


BODY = base64.b64encode(hashlib.sha512(b"a key").digest() * 8 + b"end").decode()
PEM_LINES = ["-----BEGIN PRIVATE KEY-----", *textwrap.wrap(BODY, 64), "-----END PRIVATE KEY-----"]
PEM = "\n".join(PEM_LINES) + "\n"


@pytest.mark.parametrize("value", [PEM, PEM.replace("\n", "\r\n"), PEM.replace("\n", "\\n")])
@pytest.mark.parametrize("prefix", ["", "+", "-", "    ", "  12 | ", "# ", '"', "\\n", "^M"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n", " ", '",\n', "$\n"])
def test_no_line_of_a_secret_is_left_whatever_stands_around_it(
    value: str, prefix: str, end: str
):  # S13
    redactor = Redactor({"DEPLOY_KEY": value})
    text = "".join(prefix + line + end for line in PEM_LINES)
    cleaned = redactor.text(text)
    assert "[redacted DEPLOY_KEY]" in cleaned
    assert [line for line in PEM_LINES if len(line) >= MIN_LINE and line in cleaned] == []
    # Nor any part of one that would be worth something.
    assert re.findall(r"[A-Za-z0-9/+]{8,}", cleaned.replace("DEPLOY_KEY", "")) == ["redacted"] * (
        cleaned.count("redacted")
    )


@pytest.mark.parametrize("columns", [40, 76, 1000])
def test_a_key_whose_lines_are_broken_elsewhere_is_found(columns: int):
    redactor = Redactor({"DEPLOY_KEY": PEM})
    text = "\n".join(f"+{line}" for line in textwrap.wrap(BODY, columns))
    assert not re.search(
        r"[A-Za-z0-9/+]{9}", redactor.text(text).replace("[redacted DEPLOY_KEY]", "")
    )


def test_short_lines_of_a_secret_are_ordinary_words():
    redactor = Redactor({"A_SECRET": "a line of its own\nshort line\n}"})
    assert (
        redactor.text("> a line of its own\n> short line") == "> [redacted A_SECRET]\n> short line"
    )
    assert redactor.text("a line of its own\nshort line\n}") == "[redacted A_SECRET]"


def test_hashes_ids_and_other_keys_are_left_alone():
    """Also where each secret is known in every disguise."""
    secrets = {f"K{n}_KEY": hashlib.sha256(f"secret {n}".encode()).hexdigest() for n in range(50)}
    redactor = Redactor({**secrets, "DEPLOY_KEY": PEM, "GCP_CREDENTIALS": ACCOUNT,
                         "DATABASE_URL": "postgres://u:p%40ss%2Fword9@db.example/a"})  # fmt: skip
    other = [hashlib.sha512(f"other {n}".encode()).digest() for n in range(300)]
    text = "\n".join((
        *(each.hex() for each in other), *(each.hex(":") for each in other),
        *(base64.b64encode(each).decode() for each in other),
        *(json.dumps({"id": each.hex()[:40], "path": f"src/{n}/a%20b.py"})
          for n, each in enumerate(other)),
        "## Task 1.2: Rotate the key of db.example for user, see https://db.example/app?x=1&y=2",
        "def password(user: str) -> str: return os.environ['DATABASE_URL']  # postgres://",
    ))  # fmt: skip
    assert redactor.text(text) == text
    stream = redactor.stream()
    assert stream.feed(text.encode()) + stream.end() == text.encode()


ACCOUNT = json.dumps(
    {
        "type": "service_account",
        "private_key_id": "0123456789abcdef",
        "private_key": PEM,
        "token_uri": "https://oauth2.example.com/token",
        "keys": [{"client_secret": "inner-secret-1"}, 7],
    }
)


def test_a_secret_inside_json_has_a_name_of_its_own():
    redactor = Redactor({"GCP_CREDENTIALS": ACCOUNT})
    for said in ("0123456789abcdef", "inner-secret-1", PEM.strip(), PEM_LINES[3]):
        assert redactor.text(f"({said})") == "([redacted GCP_CREDENTIALS])"
    kept = "https://oauth2.example.com/token service_account"
    assert redactor.text(kept) == kept


@pytest.mark.parametrize("value", [
    "host=h user=u password=hunter2hunter dbname=x", "Server=h;Password=hunter2hunter;Encrypt=on",
    "[default]\naws_secret_access_key = hunter2hunter\nregion = eu", '{"password": "hunter2hunter"',
    "postgres://h/db?user=u&password=hunter2hunter", "export DB_PASSWORD='hunter2hunter'\n",
])  # fmt: skip
def test_a_password_among_other_settings_is_found_by_itself(value: str):
    assert Redactor({"APP_SECRET": value}).text("it is hunter2hunter.") == (
        "it is [redacted APP_SECRET]."
    )


@pytest.mark.parametrize("form", [
    "it'\"'\"'s a secret", "it'\\''s a secret", "it\\'s\\ a\\ secret", "it%27s+a+secret",
    "it%27s%20a%20secret", "it&#x27;s a secret", "it\\u0027s a secret",
])  # fmt: skip
def test_a_secret_is_found_as_shells_and_forms_write_it(form: str):
    assert Redactor({"A_KEY": "it's a secret"}).text(f"<{form}>") == "<[redacted A_KEY]>"


def test_a_value_can_be_a_secret_whatever_it_is_called():
    redactor = Redactor({"A_KEY": SECRET}, [("notify.webhook", SECRET), ("x", "short")])
    assert redactor.text(f"{SECRET} short") == "[redacted notify.webhook] short"


def test_settings_that_are_marked_as_secret_are_masked_by_every_redactor():  # S13 B13
    hook = "https://hooks.example/services/T00/B00/xyz"
    told = Settings(notify=NotifySettings(webhook=hook, command=("curl", hook)))
    for redactor in (Redactor({}), REDACTOR):
        notify = redactor.event(told).notify
        assert (notify.webhook, notify.command) == (MASK, (MASK,))
        assert redactor.event(Settings()) == Settings()


def test_every_setting_has_a_place_and_those_that_are_secret_a_mark():
    keys = dict(leaves(Settings))
    assert {"agents", "agent.timeout", "notify.about"} <= keys.keys()
    assert [key for key, kind in keys.items() if is_secret(kind)] == [
        "notify.webhook", "notify.command"
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_a_stream_covers_what_is_longer_than_it_holds(size: int):
    redactor = Redactor({"DEPLOY_KEY": PEM * 9, "FLAT_KEY": "x" * 600, "A_KEY": SECRET})
    text = f"begin {SECRET} " + PEM * 9 + "middle " + "x" * 5000 + "y " + "\\" * 9000 + SECRET
    text += "".join(f"+{line}\n" for line in PEM_LINES * 9) + f"ünd {SECRET} end"
    data = text.encode()
    stream = redactor.stream()
    pieces = [stream.feed(data[at : at + size]) for at in range(0, len(data), size)]
    cleaned = b"".join((*pieces, stream.end())).decode()
    assert not re.search(r"[A-Za-z0-9/+]{9}|xx", cleaned.replace("redacted", ""))
    assert cleaned.startswith("begin [redacted A_KEY] [redacted DEPLOY_KEY]")
    assert "\\" * 8990 in cleaned
    assert cleaned.endswith("\nünd [redacted A_KEY] end")
    assert cleaned.count("[redacted FLAT_KEY]") == 1


@pytest.mark.parametrize("name", ["HOME", "PATH", "GIT_AUTHOR_NAME", "PASSWD"])
def test_any_other_variable_is_no_secret(name: str):
    assert Redactor({name: SECRET}).text(SECRET) == SECRET


def test_a_secret_has_eight_characters_or_more():
    redactor = Redactor({"A_KEY": "1234567", "B_KEY": "abcdefgh", "C_KEY": " " * 20})
    assert redactor.text("1234567 abcdefgh" + " " * 30) == "1234567 [redacted B_KEY]" + " " * 30


def test_what_surrounds_a_value_need_not_be_there():
    assert Redactor({"A_KEY": f"  {SECRET}\n"}).text(f"({SECRET})") == "([redacted A_KEY])"


def test_every_occurrence_goes():
    assert REDACTOR.text(f"{SECRET}{SECRET},{SECRET}") == f"{BLOT}{BLOT},{BLOT}"


def test_a_secret_that_holds_another_is_covered_whole():
    redactor = Redactor({"A_KEY": "abcdefgh", "B_TOKEN": "abcdefgh-and-more"})
    assert redactor.text("abcdefgh-and-more abcdefgh") == "[redacted B_TOKEN] [redacted A_KEY]"


def test_secrets_that_overlap_are_covered_by_one_blot():
    redactor = Redactor({"A_KEY": "abcdefgh", "B_TOKEN": "efghijklmnop"})
    assert redactor.text("<abcdefghijklmnop>") == "<[redacted B_TOKEN]>"


def test_a_secret_that_overlaps_itself_leaves_no_end():
    assert Redactor({"A_KEY": "abababab"}).text("<ababababab>") == "<[redacted A_KEY]>"


def test_the_first_of_two_names_for_one_secret_is_given():
    assert Redactor({"B_KEY": SECRET, "A_KEY": SECRET}).text(SECRET) == "[redacted A_KEY]"


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_inside_json_is_found(*, ascii_only: bool):
    secret = 'pass"word\\wörter\n1'
    text = json.dumps({"env": secret}, ensure_ascii=ascii_only)
    assert json.loads(Redactor({"A_KEY": secret}).text(text)) == {"env": "[redacted A_KEY]"}


@given(
    st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=3),
    st.text("ab", max_size=60),
)
def test_no_character_of_any_occurrence_is_left(secrets: list[str], text: str):
    redactor = Redactor({f"KEY_{n}": secret for n, secret in enumerate(secrets)})
    covered = {
        at + offset
        for secret in secrets
        for at in range(len(text))
        if text.startswith(secret, at)
        for offset in range(len(secret))
    }
    cleaned = redactor.text(text)
    for n in range(len(secrets)):
        cleaned = cleaned.replace(f"[redacted KEY_{n}]", "")
    assert cleaned == "".join(char for at, char in enumerate(text) if at not in covered)


def test_a_redactor_shows_its_secrets_to_nobody():
    assert SECRET not in repr(REDACTOR)


def test_free_text_is_redacted_wherever_it_stands():  # S13
    said = f"used {SECRET}"
    event = ChecksFinished(
        at=NOON, task=SECRET, commit=SECRET, tree=SECRET,
        results=(
            CheckResult(command=said, outcome=Outcome.FAIL, output=said),
            CheckResult(command="true", outcome=Outcome.PASS),
        ),
    )  # fmt: skip
    clean = f"used {BLOT}"
    assert REDACTOR.event(event) == ChecksFinished(
        at=NOON, task=SECRET, commit=SECRET, tree=SECRET,
        results=(
            CheckResult(command=clean, outcome=Outcome.FAIL, output=clean),
            CheckResult(command="true", outcome=Outcome.PASS),
        ),
    )  # fmt: skip
    conflict = MergeConflicted(at=NOON, task="a", candidate=1, files=(said, "b"), detail=said)
    assert REDACTOR.event(conflict) == structs.replace(conflict, files=(clean, "b"), detail=clean)


def test_settings_are_redacted_and_the_plan_is_not():
    plan = Plan(
        id="p", title=SECRET, dialect="milestone", path="p.md", checks=(SECRET,),
        tasks=(Task(id="1.1", title=SECRET, text=f"rotate {SECRET}"),),
    )  # fmt: skip
    told = Settings(checks=(f"curl {SECRET}",), sandbox=SandboxSettings(read=(SECRET,)))
    event = RunStarted(
        at=NOON, run="r", plan=plan, settings=told, base="c", base_branch=SECRET,
        sandbox="bwrap", version="1",
    )  # fmt: skip
    cleaned = REDACTOR.event(event)
    assert cleaned.plan is plan
    assert cleaned.base_branch == SECRET
    assert cleaned.settings.checks == (f"curl {BLOT}",)
    assert cleaned.settings.sandbox.read == (BLOT,)


@given(events())
def test_a_fact_without_secrets_is_the_same_object(event: Event):
    event = Redactor({}).event(event)  # a setting that is marked as secret is one
    assert Redactor({}).event(event) is event
    assert Redactor({"A_KEY": "no text holds this one"}).event(event) is event


def test_words_of_fixed_meaning_stay_even_when_they_are_secrets():
    redactor = Redactor({"A_KEY": "snapshot", "B_KEY": "checkout"})
    event = SnapshotTaken(at=NOON, task="a", n=1, kind="snapshot", commit="c", tree="t",
                          changed=True, files=("snapshot",))  # fmt: skip
    assert redactor.event(event) == structs.replace(event, files=("[redacted A_KEY]",))


@pytest.mark.parametrize("kind", EVENT_TYPES)
@settings(max_examples=30)
@given(data=st.data())
def test_a_redacted_fact_can_be_written_down(kind: type, data: st.DataObject):
    event = data.draw(instances(kind))
    words = {word for _, word in _words(inspect.type_info(kind), "")}
    texts = {text for text in _texts(event) if len(text.strip()) >= MIN_LENGTH}
    redactor = Redactor({f"KEY_{n}": word for n, word in enumerate(sorted(words | texts))})
    cleaned = redactor.event(event)
    assert codec.decode(codec.encode(cleaned)) == cleaned
    assert texts.isdisjoint(_texts(cleaned))


def test_every_field_of_fixed_words_is_kept():
    """A word that is not out of its set makes the whole journal unreadable."""
    fields = {name for kind in EVENT_TYPES for name, _ in _words(inspect.type_info(kind), "")}
    assert fields <= KEPT


@pytest.mark.parametrize("answer", [Review, PlayerAnswer, Draft])
@given(data=st.data())
def test_no_text_of_an_agent_is_kept(answer: type[Struct], data: st.DataObject):
    """An agent may write a secret into any field that takes free text."""
    given = data.draw(instances(answer))
    texts = {text for text in _free_texts(given) if len(text.strip()) >= MIN_LENGTH}
    redactor = Redactor({f"KEY_{n}": text for n, text in enumerate(sorted(texts))})
    assert texts.isdisjoint(_free_texts(redacted(given, redactor.text)))


def _free_texts(value: Any) -> list[str]:
    """All text in an agent's answer but words out of a closed set."""
    if isinstance(value, Struct):
        closed = {name for name, _ in _words(inspect.type_info(type(value)), "")}
        names = [name for name in value.__struct_fields__ if name not in closed]
        return [text for name in names for text in _free_texts(getattr(value, name))]
    if isinstance(value, tuple):
        return [text for item in value for text in _free_texts(item)]
    return [value] if isinstance(value, str) else []


def test_every_kept_field_is_a_field_somewhere():
    names = {name for kind in EVENT_TYPES for name in _fields(inspect.type_info(kind))}
    assert names >= KEPT


def _words(kind: inspect.Type, field: str) -> set[tuple[str, str]]:
    """The words of closed sets in a type, each with the field it stands in; plans aside."""
    match kind:
        case inspect.StructType(cls=cls) if cls in {Plan, Task}:
            return set()
        case inspect.StructType(fields=fields):
            found = [_words(each.type, each.name) for each in fields]
            return set[tuple[str, str]]().union(*found)
        case inspect.UnionType(types=types):
            return set[tuple[str, str]]().union(*(_words(each, field) for each in types))
        case inspect.VarTupleType(item_type=item) | inspect.Metadata(type=item):
            return _words(item, field)
        case inspect.LiteralType(values=values):
            return {(field, str(value)) for value in values}
        case inspect.EnumType(cls=cls):
            return {(field, str(member.value)) for member in cls}
        case (
            inspect.StrType() | inspect.IntType() | inspect.FloatType() | inspect.BoolType()
            | inspect.NoneType() | inspect.DateTimeType()
        ):  # fmt: skip
            return set()
        case _:
            raise NotImplementedError(f"teach Redactor about {kind}")


def _fields(kind: inspect.Type) -> set[str]:
    match kind:
        case inspect.StructType(fields=fields):
            return {each.name for each in fields}.union(*(_fields(each.type) for each in fields))
        case inspect.UnionType(types=types):
            return set[str]().union(*(_fields(each) for each in types))
        case inspect.VarTupleType(item_type=item) | inspect.Metadata(type=item):
            return _fields(item)
        case _:
            return set()


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, Struct) and not isinstance(value, Plan | Task):
        free = [name for name in value.__struct_fields__ if name not in KEPT]
        return [text for name in free for text in _texts(getattr(value, name))]
    return []


@given(
    st.lists(st.sampled_from([SECRET, SECRET[:5], "wörd", "\n", "sk-", SECRET[3:]]), max_size=8),
    st.integers(1, 7),
)
def test_a_stream_says_what_the_whole_would(parts: list[str], size: int):  # S13
    """However it is cut into pieces, in the middle of a secret or of a character."""
    data = "".join(parts).encode()
    stream = REDACTOR.stream()
    pieces = [stream.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert b"".join((*pieces, stream.end())).decode() == REDACTOR.text("".join(parts))


def test_a_stream_gives_on_what_is_no_text_and_holds_back_little():
    stream = REDACTOR.stream()
    data = b"\xff\xfe" * 1000
    first = stream.feed(data)
    assert len(first) >= len(data) - len(SECRET)
    assert first + stream.end() == data


def test_a_stream_without_secrets_holds_nothing_back():
    stream = Redactor({}).stream()
    assert (stream.feed(b"\xff\xc3"), stream.end()) == (b"\xff\xc3", b"")


def test_a_program_that_needs_no_key_sees_none():
    kept = {"HOME": "/h", "GIT_CONFIG_KEY_0": "core.autocrlf"}
    assert without_secrets({**kept, "API_KEY": "12345678", "my_password": "x"}) == kept
    # What it needs to reach anything it still has, though it may hold a password.
    kept |= {"SSH_AUTH_SOCK": "/run/agent.1", "https_proxy": "http://user:password@proxy:3128"}
    kept |= {"APPRISE_URLS": "discord://id/token"}
    assert without_secrets({**kept, "GITHUB_PAT": "y"}) == kept
    assert Redactor(kept).text("discord://id/token user:password") == (
        "[redacted APPRISE_URLS] [redacted https_proxy]"
    )
