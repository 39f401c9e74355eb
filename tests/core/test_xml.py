"""XML as models write it is read without danger: what is in it, where, and nothing else (X1)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.errors import PlanError
from windlass.formats import xml

HOLDERS = frozenset({"task", "meta", "list"})


def read(text: str) -> xml.Element:
    return xml.read("t.xml", text, HOLDERS)


def test_elements_know_names_lines_and_texts():
    root = read(
        '\ufeff<?xml version="1.0"?>\n<!-- <task> -->\n<task id="1" filesToCreate=\'a &gt; b\'>\n'
        "  <meta>\r\n    <id> L1 </id><empty_one/></meta>\n</task>\n<!-- end -->"
    )
    assert (root.name, root.line) == ("task", 3)
    assert root.attributes == {"id": "1", "files-to-create": "a > b"}
    assert root.source.startswith('<task id="1"')
    assert root.source.endswith("</task>")
    [meta] = root.children
    one, two = meta.children
    assert (one.name, one.text, one.line) == ("id", "L1", 5)
    assert (two.name, two.text, two.source) == ("empty-one", "", "<empty_one/>")
    assert meta.named("id") == [one]


def test_in_an_element_that_holds_no_others_all_is_text():
    bare = "if a < b && c: list<T>\n      <b>bold</b> </c> <!DOCTYPE html>"
    root = read(f"<task><r>\n      {bare}\n    </r></task>")
    assert root.children[0].text == "if a < b && c: list<T>\n<b>bold</b> </c> <!DOCTYPE html>"


def test_bare_angles_in_an_element_that_holds_others_are_its_text():
    root = read("<task>a <T> b < c <x y> &amp; <![CDATA[<d> ]] ]]>e<r/></task>")
    assert root.text == "a <T> b < c <x y> & <d> ]] e"
    assert [child.name for child in root.children] == ["r"]


def test_only_xmls_own_entities_and_numbers_are_expanded():
    text = "&amp;lt; &lt;&gt;&quot;&apos; &#65;&#x42; &xxe; &#0; &#xD800; &#1114112; <!--c-->x"
    assert read(f"<r>{text}</r>").text == "&lt; <>\"' AB &xxe; &#0; &#xD800; &#1114112; x"


def test_an_element_within_one_of_its_name_and_what_hides_its_end():
    root = read("<r>a <r x='1'>b</r> <r/><r a=''/> <!-- </r> --><![CDATA[</r>]]> c</r>")
    assert root.text == "a <r x='1'>b</r> <r/><r a=''/> </r> c"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<!DOCTYPE t [<!ENTITY a 'b'>]>\n<task/>", "1: the XML has a declaration"),
        ("<task>\n<!ENTITY x SYSTEM 'file:///etc/passwd'></task>", "2: the XML has a declaration"),
        ("<task>\n<r>a<r>b</r></task>", "2: the XML has a <r> that never ends"),
        ("<task>\n<meta></task>", "2: the XML has </task> where line 2's <meta> is open"),
        ("</task>", "1: the XML has </task> where nothing is open"),
        ("<task><meta></meta>\n<r></r><!-- </task>", "2: the XML has a '<!--' that never ends"),
        ("<task>\r\r<r><![CDATA[</r></task>", "3: the XML has a '<![CDATA[' that never ends"),
        (
            "<task>" * 30 + "</task>",
            "1: the XML has more than 20,000 elements, or is nested beyond 20",
        ),
        ("<task>\n<meta></meta></task><list>", "2: the XML has a <list> that never ends"),
        (
            "<task>\n<meta><r></r></meta> </x></task>",
            "2: the XML has </x> where line 1's <task> is open",
        ),
        ("<task><list></list> <task></task>", "1: the XML has a <task> that never ends"),
        ("<task/>\n<task/>", "2: the XML is not one element"),
        ("<task/> text", "1: the XML is not one element"),
        ("text <T>", "1: the XML is not one element"),
    ],
)
def test_what_cannot_be_read_says_where(text, why):
    with pytest.raises(PlanError) as refused:
        read(text)
    assert f"t.xml:{why}" in str(refused.value)
    assert "; " in str(refused.value), "the cure"


PIECES = [
    "<task>", "</task>", "<r>", "</r>", "<meta>", "</meta>", "<r/>", "<r a='", "'", ">", "<", "&",
    "&lt;", "&#1;", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<!", "text", "\n", "\r", " ",
    "/",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_whatever_the_text_is_it_is_read_or_refused(pieces):
    text = "".join(pieces)
    try:
        root = read(text)
    except PlanError:
        return
    assert root.source in text


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<r>",
        "<!--",
        "<r a='",
        "<T> ",
        "<r></r>",
        "&amp;",
        "<r a='1' ",
        "<!-- -->",
        "<task>",
        " ",
    ],
)
def test_time_grows_with_the_text_alone(piece):
    def seconds(size: int) -> float:
        text = "<task>" + piece * (size // len(piece)) + "</r></task>"
        began = time.process_time()
        with pytest.raises(PlanError):
            read(text)
        return time.process_time() - began

    # Ten times as long for ten times the text, and then some; a hundred times would be a defect.
    assert min(seconds(500_000) for _ in range(2)) < 10 * 3 * max(
        min(seconds(50_000) for _ in range(3)), 0.001
    )


def test_what_is_too_long_is_not_begun():
    with pytest.raises(PlanError, match="more than 1,000,000 characters"):
        read("<task>" + "a" * 1_000_000 + "</task>")
