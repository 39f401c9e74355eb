"""What of a record strangers may read."""  # B13 S13

from hypothesis import given
from hypothesis import strategies as st

from windlass.views.scrubbing import impersonal, scrubbed

FACT = {
    "type": "PlayerFailed",
    "task": "1.1",
    "by": "Ann User",
    "summary": "all our code",
    "message": "\n no such model\nquoted: all our code",
    "empty": "",
    "n": 2,
    "usage": {"cost_usd": 0.5, "known": True},
    "results": [{"command": "pytest -q", "output": "all our code", "tests": None}],
    "plan": {"id": "p", "title": "all our plans"},
}


def test_words_go_and_the_shape_stays():
    assert scrubbed(FACT, str) == {
        "type": "PlayerFailed",
        "task": "1.1",
        "by": "a person",
        "summary": "[12 characters]",
        "message": "no such model",
        "empty": "",
        "n": 2,
        "usage": {"cost_usd": 0.5, "known": True},
        "results": [{"command": "pytest -q", "output": "[12 characters]", "tests": None}],
        "plan": {"id": "p", "title": "[13 characters]"},
    }
    assert scrubbed({"by": "windlass land"}, str) == {"by": "windlass land"}
    assert scrubbed({"reason": "\n"}, str) == {"reason": ""}


def test_words_that_are_kept_still_pass_the_redactor():
    told = scrubbed(FACT, lambda text: text.replace("code", "X").replace("1.1", "Y"), texts=True)
    assert isinstance(told, dict)
    assert told["summary"] == "all our X"
    assert told["task"] == "Y"
    assert scrubbed({"secret": 1, "id": "secret"}, lambda _: "Z") == {"Z": "Z"}


def leaves(value: object) -> list[object]:
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, list) else [value]


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_what_is_in_no_listed_field_is_told_by_its_length(value: object):
    told = leaves(scrubbed({"new field": value}, str)["new field"])
    lengths = (f"[{len(x)} characters]" if isinstance(x, str) and x else x for x in leaves(value))
    assert told == list(lengths)


def test_names_are_replaced_the_longest_first_and_as_words():
    names = {"/home/ann": "~", "/home/ann/app": "REPOSITORY", "ann": "USER", "a@b": "SOMEBODY"}
    assert impersonal("/home/ann/app/x /home/ann/.y", names) == "REPOSITORY/x ~/.y"
    assert (
        impersonal("ann's planning, by ann <a@b>", names) == "USER's planning, by USER <SOMEBODY>"
    )
