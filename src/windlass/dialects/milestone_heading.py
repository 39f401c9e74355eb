"""What a task's heading is in the milestone dialect, with the marks that authors add to it.

A box or a symbol may stand before the word, an aside in brackets behind the id; neither makes a
task of a heading that only speaks of tasks, so that with them the id must have a number.
"""

import re

_TASK = re.compile(
    r"(?P<mark>\[[ x~]?\]\s*|[^\w\s]+\s+)?Task\s+(?P<id>\S+?)"
    r"(?:(?:\s*(?P<aside>\([^()]*\)|\[[^\[\]]*\]))?"
    r"(?P<separator>\s*[:：]\s*|\s+[-–—]\s+)|$)(?P<title>.*)",  # noqa: RUF001
    re.IGNORECASE,
)
_MAYBE = re.compile(
    r"(?:^|\r)[^\w\r\n]*(?:\[x\][^\w\r\n]*)?Task\s+(?:\S*[0-9:：]|\S+\s+[-–—:：])",  # noqa: RUF001
    re.IGNORECASE | re.MULTILINE,
)
"""Without such a line there is no heading of a task either, and nothing to parse for it."""
_BOLD = re.compile(r"(?:\[x\])?\W*\*\*", re.IGNORECASE)
_STRUCK = re.compile(r"(?:\[x\])?\W*~~", re.IGNORECASE)
_TICKED = re.compile(r"\[x\]|[✅✓✔☑]", re.IGNORECASE)
_NEARLY = re.compile(r"(?:\[x\])?\W*Task\s+\S*[0-9]", re.IGNORECASE)
_WITHOUT_ID = re.compile(r"(?:\[x\])?\W*Task\s*[:：]\W*\w", re.IGNORECASE)  # noqa: RUF001
# 'Task Summary: …' speaks of tasks; it is no task called Summary.
_NOT_AN_ID = frozenset({
    "breakdown", "categories", "complete", "completed", "completion", "context", "dependencies",
    "description", "details", "frontmatter", "graph", "group", "groups", "id", "ids", "index",
    "list", "management", "notes", "order", "organization", "overview", "progress", "sequence",
    "specification", "status", "summary", "table", "template", "workflow",
})  # fmt: skip


def may_have_task(text: str) -> bool:
    """Whether the text has a line that may be a task's heading; if not, it need not be parsed."""
    return _MAYBE.search(text) is not None


def task_in(text: str) -> re.Match[str] | None:
    """The heading's text as a task's, if it is one; it may be bold as a whole."""
    found = _TASK.fullmatch(text.replace("**", "") if _BOLD.match(text) else text)
    if found is None or found["id"].casefold() in _NOT_AN_ID:
        return None
    # Only a number tells 'Task 3' from 'Task Force', '✅ Task 3: …' from '✅ Task Goals: …'.
    plain = found["separator"] and not found["mark"] and not found["aside"]
    return found if plain or re.search("[0-9]", found["id"]) else None


def title_of(found: re.Match[str]) -> str:
    """The task's title; the aside is a part of it."""
    return " ".join(filter(None, (found["title"], found["aside"])))


def is_ticked(found: re.Match[str]) -> bool:
    """Whether the heading says that the task is done."""
    return _TICKED.match(found["mark"] or found["aside"] or "") is not None


def why_none(text: str) -> str:
    """Why a heading that looks like a task is none; nothing where it does not look like one."""
    if _WITHOUT_ID.match(text):
        return "it has no id: write 'Task 1.1: …'"
    if not _NEARLY.match(text):
        return ""
    return "is struck out" if _STRUCK.match(text) else "no ':' or ' - ' follows its id"
