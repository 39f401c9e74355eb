"""Tables are read as GitHub reads them, each row with its line."""

import pytest

from windlass.formats import markdown
from windlass.formats.tables import Row, cells, table_of


def table(text: str):
    found = [made for block in markdown.parse(text).blocks if (made := table_of(block))]
    assert len(found) < 2
    return found[0] if found else None


def test_rows_know_their_lines():
    found = table("# T\n\nsome prose\n| **A** | B c |\n|:--|--:|\n| 1 | `x` |\n| 2 |\n\nend\n")
    assert found is not None
    assert (found.line, found.header, found.columns) == (4, ("**A**", "B c"), ("a", "b c"))
    assert found.rows == (Row(line=6, cells=("1", "`x`")), Row(line=7, cells=("2",)))
    assert [found.rows[1].cell(index) for index in (0, 1, None)] == ["2", "", ""]


def test_pipes_at_the_ends_may_be_missing():
    found = table("A | B\n---|---\n1 | 2\n")
    assert found is not None
    assert [row.cells for row in found.rows] == [("1", "2")]


def test_a_pipe_that_is_escaped_or_in_code_separates_nothing():
    found = table("|a|b|\n|-|-|\n| x \\| y | `p | q` |\n| 1 | 2 | 3 |\n")
    assert found is not None
    assert [row.cells for row in found.rows] == [("x | y", "`p | q`"), ("1", "2", "3")]


@pytest.mark.parametrize(
    "text",
    [
        "```\n|a|b|\n|-|-|\n```\n",
        "    |a|b|\n    |-|-|\n",
        "|a|b|\n\n|-|-|\n",
        "|a|b|\n|-|\n",
        "a\n-|-\n",
        "|a|b|\n",
        "<!--\n|a|b|\n|-|-|\n-->\n",
    ],
)
def test_what_is_no_table(text):
    assert table(text) is None


def test_a_line_without_a_pipe_or_a_line_of_dashes_ends_it():
    for end in ("**Total:** 2", "---", "\n| 3 |"):
        found = table(f"|a|b|\n|-|-|\n|1|2|\n{end}\n")
        assert found is not None
        assert [row.line for row in found.rows] == [3]


def test_cells():
    assert cells("") == ("",)
    assert cells("| | |") == ("", "")
