"""A change is shown file by file, and what is left out is told by name."""  # B2

from hypothesis import given
from hypothesis import strategies as st

from windlass.ports import Patch
from windlass.runner.changes import MOST_NAMED, MOST_PARTS, named, view_of
from windlass.views.quotation import LONGEST, quoted


def patch(path: str, size: int, **more) -> Patch:
    """A file's change of so many characters, of which no two lines are the same."""
    lines = "".join(f"+{path} {n:09}\n" for n in range(size // (len(path) + 12) + 1))
    return Patch(path=path, what="changed", text=lines[:size], **more)


def seen_by_any(view) -> str:
    return "\n".join((view.text, *(part.text for part in view.parts)))


def test_what_fits_is_shown_whole():
    view = view_of([patch("a.py", 1000), patch("b.py", 20)])
    assert view.text.startswith("2 files changed:\na.py (changed)\nb.py (changed)\n\n+a.py")
    assert (view.left_out, view.unread, view.parts, view.unshown) == ((), (), (), ())
    assert view_of([]).text == ""


def test_a_huge_file_does_not_push_out_a_small_change():
    small = patch("src/auth.py", 150)
    for order in ([patch("lock.json", 3_000_000), small], [small, patch("lock.json", 3_000_000)]):
        view = view_of(order)
        assert small.text in view.text
        assert len(view.left_out) == 1
        assert "lock.json" in view.left_out[0]


def test_what_is_a_little_too_long_the_coach_reads_itself():
    big = patch("big.py", LONGEST + 10_000)
    view = view_of([big])
    assert view.unread == view.unshown == ("big.py",)
    assert view.parts == ()
    assert "characters of big.py are left out here" in view.text
    assert big.text[:1000] in view.text
    assert big.text[-1000:] in view.text


def test_a_very_large_change_goes_to_several_coaches_whole():
    patches = [patch(f"src/{n}.py", 50_000) for n in range(4)]
    view = view_of(patches)
    assert view.parts
    shown = seen_by_any(view)
    for each in patches:
        for line in each.text.splitlines()[:-1]:
            assert line in shown
    assert view.unread == ()
    assert set(view.unshown) == {each.path for each in patches}


def test_the_number_of_coaches_is_bounded_and_the_rest_is_named():
    view = view_of([patch("a.py", 100_000), patch("huge.json", 9_000_000)])
    assert len(view.parts) == MOST_PARTS
    assert view.unread == ("huge.json",)
    assert set(view.unshown) == {"a.py", "huge.json"}


def test_what_has_no_lines_is_named():
    view = view_of(
        [
            Patch(path="logo.png", what="new, binary", text="Binary files differ", opaque=True),
            Patch(path="old.png", what="deleted, binary", text="B", opaque=True, gone=True),
        ]
    )
    assert view.unread == ("logo.png",)
    assert view.left_out[0] == "logo.png: new, binary, so that its content is not shown"
    assert "logo.png (new, binary)" in view.text


def test_of_a_file_that_is_gone_there_is_nothing_to_read():
    view = view_of([patch("gone.py", 2 * LONGEST, gone=True)])
    assert view.unread == view.parts == ()
    assert "gone.py" in view.left_out[0]


def test_very_many_files_are_named_by_their_folders():
    many = [patch(f"vendor/lib{n % 3}/deep/{n}.js", 900) for n in range(2000)]
    view = view_of([*many, patch("src/auth.py", 100)])
    assert "+src/auth.py" in view.text
    assert "vendor/lib0/deep/ (667 files)" in view.text
    assert len(view.unread) <= MOST_NAMED
    assert "vendor/lib2/deep/: 644 files" in "\n".join(view.left_out)
    flat = [f"{n}.txt" for n in range(MOST_NAMED + 1)]
    assert named(flat) == ("every file",)
    assert named([*flat, *(f"a/{n}" for n in range(50))]) == ("every file",)
    assert named(["x", *(f"a/b/{n}" for n in range(50)), "a/c"]) == ("x", "a/b/", "a/c")


paths = st.text("ab/x.", min_size=1, max_size=12).map(lambda t: t.strip("/") or "a")


@given(st.dictionaries(paths, st.integers(1, 200_000), max_size=12), st.data())
def test_nothing_is_ever_left_out_in_silence(sizes, data):
    gone = {path: data.draw(st.booleans()) for path in sizes}
    patches = [patch(path, size, gone=gone[path]) for path, size in sizes.items()]
    view = view_of(patches)
    for text in (view.text, *(part.text for part in view.parts)):
        assert text in quoted("change", text), "a prompt shows it as it is"
    for each in patches:
        whole = each.text in view.text
        told = any(line.startswith(f"{each.path}: ") for line in view.left_out)
        assert whole or told
        assert whole or each.gone or each.path in view.unshown


@given(st.lists(paths, max_size=200))
def test_the_names_to_ask_for_are_few(found):
    assert len(named(found)) <= MOST_NAMED


@given(st.integers(0, 300_000), st.lists(st.integers(1, 400), min_size=1, max_size=50))
def test_small_changes_are_whole_beside_any_other(huge, sizes):
    small = [patch(f"s{n}.py", size) for n, size in enumerate(sizes)]
    view = view_of([patch("huge", huge + 1), *small])
    for each in small:
        assert each.text in view.text
