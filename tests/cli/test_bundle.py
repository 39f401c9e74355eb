"""`windlass bundle`: what a bug report needs, and nothing else."""  # B13

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from desk import Desk
from finished_run import InProcessDesk, finished
from windlass.app.doctor import doctor


@pytest.fixture
def done(tmp_path: Path) -> InProcessDesk:
    return finished(tmp_path)


def held(desk: Desk, *args: str, **more: str) -> dict[str, str]:
    answer = desk.call("bundle", *args, **more)
    assert answer.code == 0, answer
    path = Path(answer.err.partition("Wrote ")[2].partition(". Check")[0])
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    listed = [line.split()[1] for line in answer.out.splitlines()]
    assert listed == list(found)
    return {name.removeprefix("windlass-bundle/"): text for name, text in found.items()}


def test_it_holds_journal_configuration_versions_and_findings(done: InProcessDesk):
    before = {k: v for k, v in done.everything().items() if "windlass-bundle" not in k}
    inside = held(done, USER="ada-lovelace")
    after = {k: v for k, v in done.everything().items() if "windlass-bundle" not in k}
    assert after == before
    assert set(inside) == {
        "about.txt",
        "configuration.json",
        "doctor.txt",
        "versions.json",
        *(
            f"plans/plan/{name}"
            for name in ("activity.jsonl", "journal.jsonl", "log.txt", "logs.txt", "state.json")
        ),
    }
    facts = [json.loads(line) for line in inside["plans/plan/journal.jsonl"].splitlines()]
    assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
    assert facts[0]["event"]["type"] == "RunStarted"
    assert facts[-1]["event"]["status"] == "completed"
    state = json.loads(inside["plans/plan/state.json"])
    assert state["status"] == "completed"
    versions = json.loads(inside["versions.json"])
    assert {"windlass", "python", "system", "git", "claude", "sandbox"} <= set(versions)
    settings = {each["key"]: each["value"] for each in json.loads(inside["configuration.json"])}
    usual = doctor(done.repo, done.environment).settings
    assert settings == {each.key: json.loads(json.dumps(each.value)) for each in usual}
    assert "RunEnded" in inside["plans/plan/log.txt"].splitlines()[-1]


def test_nothing_of_the_user_is_in_it(done: InProcessDesk):
    inside = held(done, USER="ada-lovelace", WINDLASS_MODEL="ada-lovelace-model")
    whole = "\n".join((*inside, *inside.values()))
    for word in (str(done.root), str(done.home), "ada@example.com", "Ada ", "ada-lovelace"):
        assert word not in whole, word
    for word in ("Add the endpoint", "octocat", "see health", "hello", "dummy-key"):
        assert word not in whole, word
    assert "octocat" in "".join(held(done, "--with-texts").values())


def test_the_same_things_make_the_same_bundle(done: InProcessDesk, tmp_path: Path):
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    held(done, "--output", str(one))
    held(done, "plan", "--output", str(two))
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["record", "middle", "rubbish", "empty"])
def test_a_damaged_journal_is_packed_as_far_as_it_can_be_read(done: InProcessDesk, damage: str):
    path = done.repo / ".windlass/plans/plan/journal.db"
    data = path.read_bytes()
    at = data.index(b'"PlayerFinished"')
    broken = {
        "record": data[:at] + b'"PlayerFunished"' + data[at + 16 :],
        "middle": data[: len(data) // 2] + b"\xff" * 3000 + data[len(data) // 2 + 3000 :],
        "rubbish": b"no database " * 900,
        "empty": b"",
    }[damage]
    path.write_bytes(broken)
    done.directory = done.repo
    inside = held(done)
    assert path.read_bytes() == broken
    assert "could be read from a copy" in inside["plans/plan/trouble.txt"]
    assert "Note: the journal of" in inside["about.txt"]
    assert json.loads(inside["plans/plan/state.json"])["status"] == "completed"
    lines = inside["plans/plan/journal.jsonl"].splitlines()
    if damage == "record":
        assert len(lines) > 20
    assert all(json.loads(line)["seq"] for line in lines)
    assert held(done, "plan")["plans/plan/trouble.txt"]


def test_one_plan_or_all_of_them(done: InProcessDesk):
    plans = done.repo / ".windlass" / "plans"
    shutil.copytree(plans / "plan", plans / "other")
    assert {name.split("/")[1] for name in held(done) if "/" in name} == {"plan", "other"}
    assert {name.split("/")[1] for name in held(done, "other") if "/" in name} == {"other"}
    assert done.call("bundle", "nothing").code == 2


def test_outside_of_a_repository_the_machine_is_still_told_of(tmp_path: Path):
    desk = InProcessDesk(tmp_path)
    desk.home.mkdir()
    desk.directory = tmp_path
    inside = held(desk, "--output", str(tmp_path / "b.zip"))
    assert set(inside) == {"about.txt", "configuration.json", "doctor.txt", "versions.json"}
    assert desk.call("bundle", "plan").code == 2


def test_only_a_bundle_is_replaced(done: InProcessDesk, tmp_path: Path):
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    answer = done.call("bundle", "--output", str(precious))
    assert (answer.code, precious.read_text()) == (2, "mine")
    assert "is not a bundle" in answer.err
    held(done)
    held(done)


def test_no_folder_is_made_for_it(done: InProcessDesk, tmp_path: Path):
    answer = done.call("bundle", "--output", str(tmp_path / "nowhere" / "b.zip"))
    assert (answer.code, answer.out) == (2, "")
    assert f"there is no folder {tmp_path}/nowhere; create it, or name another" in answer.err
    assert not (tmp_path / "nowhere").exists()
