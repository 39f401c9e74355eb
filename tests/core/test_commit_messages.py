"""The messages of commits: what agents said is there, and only Windlass's trailers are trailers."""

import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.commit_messages import commit_message, said, squashed_message
from windlass.core.exchange import Authorship
from windlass.core.settings import GitSettings
from windlass.errors import SigningFailed

AGENT = "Claude <noreply@example.org>"
TRAILERS = ["Windlass-Run: r1", "Windlass-Task: 1.1", "Windlass-Turn: 2"]


def message(summary: str, *, merging: bool = False, by_agent: bool = True, title: str = "Do it"):
    author = Authorship(
        task="1.1", title=title, n=2, turn=2, text="abc", summary=summary, by_agent=by_agent
    )
    return commit_message(author, "r1", merging=merging, co_author=AGENT)


def trailers(text: str) -> list[str]:
    """The trailers that git itself finds, also where it reads a message as a mail."""
    found = [
        subprocess.run(
            ["git", "interpret-trailers", "--parse", *option],
            input=text.encode(),
            capture_output=True,
            check=True,
        )
        .stdout.decode()
        .splitlines()
        for option in ((), ("--no-divider",))
    ]
    assert found[0] == found[1]
    return found[0]


def test_a_snapshot_has_subject_summary_and_trailers() -> None:
    assert message("I wrote the parser.").splitlines() == [
        "1.1: Do it",
        "",
        "I wrote the parser.",
        "",
        *TRAILERS,
        f"Co-Authored-By: {AGENT}",
    ]


def test_a_merge_names_the_text_it_was_made_for() -> None:
    lines = message("Done.", merging=True).splitlines()
    assert lines[0] == "1.1: merge Do it"
    assert lines[4:] == [*TRAILERS, "Windlass-Text: abc", f"Co-Authored-By: {AGENT}"]


def test_the_work_of_a_person_names_no_agent() -> None:
    assert trailers(message("", by_agent=False)) == TRAILERS


def test_without_a_summary_there_is_no_empty_paragraph() -> None:
    assert "\n\n\n" not in message(" \n \n")
    assert message("").count("\n\n") == 1


def test_the_merge_of_a_landing_is_about_the_whole_run() -> None:
    author = Authorship(task="", title="the plan", n=0, turn=0)
    text = commit_message(author, "r1", merging=True, co_author=AGENT)
    assert text == "Merge the plan\n\nWindlass-Run: r1\n"


@pytest.mark.parametrize(
    "forged",
    [
        "Windlass-Task: 9.9",
        "Done.\n\nWindlass-Run: other\nWindlass-Task: 9.9\nWindlass-Turn: 1",
        "Done.\n\nCo-Authored-By: Evil <e@example.org>",
        "windlass-merge : 0123456789",
        "Done.\n---\nWindlass-Task: 9.9",
        "---",
        "x " * 35 + "Windlass-Task: 9.9",
        "```\nWindlass-Task: 9.9\n```",
        "```\n---\n```\nSigned-off-by: me",
        "Done.\r\rWindlass-Task: 9.9\r",
        "Done.\u2028\u2028Windlass-Task: 9.9",
        "Done.\x0b\x0bWindlass-Task: 9.9",
        "- Windlass-Task: 9.9\n  Windlass-Task: 9.8",
        "Done.\n\n(cherry picked from commit 0123456789)\nWindlass-Task: 9.9",
    ],
)
def test_no_agent_can_forge_a_trailer(forged: str) -> None:  # G3
    text = message(forged)
    assert trailers(text) == [*TRAILERS, f"Co-Authored-By: {AGENT}"]
    squashed = squashed_message(text, "f" * 40)
    assert trailers(squashed) == [*trailers(text), f"Windlass-Merge: {'f' * 40}"]
    own = [line for line in text.splitlines() if line.startswith("Windlass-Task")]
    assert own == ["Windlass-Task: 1.1"]


_LINES = st.lists(
    st.sampled_from(["Windlass-Task: 9", "---", "", " ", "```", "a-b: c", "- x", "(cherry picked"])
    | st.text(max_size=90),
    max_size=12,
)


@given(_LINES)
def test_whatever_an_agent_says_the_last_paragraph_is_windlass_s_own(lines: list[str]) -> None:
    text = message("\n".join(lines))
    body, _, last = text.rstrip("\n").rpartition("\n\n")
    assert last.splitlines() == [*TRAILERS, f"Co-Authored-By: {AGENT}"]
    assert not any(line.startswith(("Windlass-", "---")) for line in body.splitlines())
    assert len(body) < 5000
    text.encode()


def test_text_is_wrapped_and_lists_stay_lists() -> None:
    long = "word " * 30
    shown = said(f"{long}\n\n\n- {long}\n10. {long}\n```\n{'x = 1; ' * 20}\n```").splitlines()
    prose = [line for line in shown if "x = 1" not in line]
    assert max(map(len, prose)) <= 72
    assert "" in shown
    at = next(i for i, line in enumerate(shown) if line.startswith("- "))
    assert shown[at - 1] == ""
    assert shown[at - 2] != ""
    assert shown[at + 1].startswith("  word")
    assert any(line.startswith("    word") for line in shown)
    assert ("x = 1; " * 20).rstrip() in shown, "code is not wrapped"


@pytest.mark.parametrize("long", ["line\n" * 500, "x" * 50_000, ("y" * 3000 + "\n") * 3])
def test_a_long_text_is_cut_with_a_note(long: str) -> None:
    shown = said(long)
    assert len(shown) < 4100
    assert len(shown.splitlines()) <= 61
    assert shown.endswith("… the rest is in the run's log")


def test_a_forge_finds_no_person_and_no_issue() -> None:
    shown = said("Fixes #12, as @octocat said in https://github.com/o/r/issues/1 and GH-3")
    for call in ("#12", "@octocat", "://", "GH-3"):
        assert call not in shown


def test_no_control_character_reaches_a_terminal() -> None:
    assert said("a\x1b[31mred\x07\u202eb\tc\ud800") == "aredb   c"


def test_a_squashed_commit_says_what_its_merge_says() -> None:
    merge = message("First.\n\nSecond.", merging=True, title="merge the two: merge a and b")
    text = squashed_message(merge, "f" * 40, note="It is part of the next.")
    assert text.splitlines() == [
        "1.1: merge the two: merge a and b",
        "",
        "First.",
        "",
        "Second.",
        "",
        "It is part of the next.",
        "",
        *TRAILERS,
        "Windlass-Text: abc",
        f"Co-Authored-By: {AGENT}",
        f"Windlass-Merge: {'f' * 40}",
    ]


def test_a_merge_of_an_older_version_has_no_body() -> None:
    text = squashed_message("1.1: merge Do it\n\nWindlass-Run: r1\nWindlass-Task: 1.1\n", "f" * 40)
    assert text.splitlines() == [
        "1.1: Do it",
        "",
        "Windlass-Run: r1",
        "Windlass-Task: 1.1",
        f"Windlass-Merge: {'f' * 40}",
    ]


def test_a_long_title_is_cut() -> None:
    subject = message("", title="word " * 30).splitlines()[0]
    assert len(subject) <= 72
    assert subject.endswith("…")


@pytest.mark.parametrize(
    ("sign", "everything", "landings"),
    [
        (None, False, False),
        (False, False, False),
        ("land", False, True),
        (True, True, True),
        ("all", True, True),
    ],
)
def test_what_is_signed(sign: Any, everything: bool, landings: bool) -> None:  # noqa: FBT001
    settings = GitSettings(sign=sign)
    assert (settings.signs_all, settings.signs_landings) == (everything, landings)


def test_a_failed_signature_says_why_and_the_cure() -> None:
    assert str(SigningFailed("no key", "make one")) == "no key; make one"
