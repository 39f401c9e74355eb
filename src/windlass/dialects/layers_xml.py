"""A task file of a layers folder that is XML: `<task>` with meta, requirements, tests, steps.

A task's text is the element as it stands in the file, for that is what its author wrote for agents
to read; from its parts only what Windlass itself acts on is taken.
"""

import re
import shlex
from collections.abc import Iterable
from typing import Final

from windlass.dialects import markdown, markup
from windlass.dialects.layers_draft import DONE, ID, Draft, listed, path_in
from windlass.dialects.markup import Element
from windlass.errors import PlanError

_FILES: Final = ("files-to-create", "files-to-modify", "files")
_CRITERIA: Final = ("acceptance-criteria", "requirements", "test-requirements")
_HOLDERS = frozenset(
    {"tasks", "task", "meta", "context", "dependencies", "depends-on", "verification", "exports",
     "from-feature", *_FILES, *_CRITERIA}
)  # fmt: skip
# Whatever comes before the task, each part taken once and for all, so that nothing is tried twice.
_TASK = re.compile(
    r"\A\ufeff?(?>\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>)*+<tasks?[\s>]", re.DOTALL
)
_INSIDE = re.compile(r"[^/\\~][^\\]*")


def is_task(text: str) -> bool:
    """Whether the text's element is a task, or several."""
    return _TASK.match(text) is not None


def drafts(path: str, text: str) -> list[Draft]:
    """The tasks that the file holds."""
    root = markup.read(path, text, _HOLDERS)
    if root.name not in ("task", "tasks"):
        cure = "a task file holds one <task>"
        raise PlanError(f"<{root.name}> is no <task>", path=path, line=root.line, hint=cure)
    return [_draft(path, each) for each in ([root] if root.name == "task" else root.named("task"))]


def _draft(path: str, task: Element) -> Draft:
    known = dict(task.attributes)
    known.update({child.name: child.text for meta in task.named("meta") for child in meta.children})
    lines = {child.name: child.line for meta in task.named("meta") for child in meta.children}
    in_name = ID.match(path.rsplit("/", 1)[-1])
    task_id = known.get("id", "").strip() or (in_name.group() if in_name else "")
    if not task_id:
        cure = "write <meta><id>L2-001</id>…</meta>"
        raise PlanError("the task has no id", path=path, line=task.line, hint=cure)
    title = known.get("name") or known.get("title") or task_id
    draft = Draft(
        id=task_id,
        title=" ".join(title.split()),
        text=markup.dedented(task.source),
        path=path,
        line=task.line,
        layer=known.get("layer", ""),
        done=known.get("status", "").strip().casefold() in DONE,
        depends_on=_depends_on(task, known),
        needs=_names(task.named("dependencies"), "interface"),
        exports=_names(task.named("exports"), "interface", "export"),
    )
    draft.take_priority(lines.get("priority", task.line), known.get("priority", "").strip())
    if not known.get("id", "").strip():
        draft.note(task.line, f"has no <id>, so it goes by its file's name: {task_id!r}")
    _take_criteria(draft, task)
    _take_files(draft, task)
    _take_steps(draft, task)
    _move(draft, known.get("cwd", ""), lines.get("cwd", task.line))
    return draft


def _depends_on(task: Element, known: dict[str, str]) -> list[str] | None:
    """The ids of tasks that it names; an interface alone names none."""
    found: list[str] = []
    for holder in task.named("dependencies", "depends-on"):
        for child in holder.named("dependency", "task", "depends-on"):
            attributes = child.attributes
            named = attributes.get("task") or attributes.get("id") or attributes.get("ref")
            # Beside a contract, text is the contract's.
            bare = ID.match(child.text) is not None and len(child.text.split()) == 1
            found += [named] if named else [child.text] if bare else []
        found += [] if holder.children else _ids(holder.text)
    found += _ids(known.get("depends-on", ""))
    return list(dict.fromkeys(found)) or None


def _ids(text: str) -> list[str]:
    """The ids that a text is made of; prose may mention others."""
    words = re.split(r"[\s,;]+", text.strip())
    return words if all(map(ID.match, words)) else []


def _names(holders: Iterable[Element], *kinds: str) -> list[str]:
    names = (child.attributes.get("name", "") for each in holders for child in each.named(*kinds))
    return [name for name in names if name]


def _take_criteria(draft: Draft, task: Element) -> None:
    holders = [task, *task.named("context")]
    for name in _CRITERIA:
        for section in (each for holder in holders for each in holder.named(name)):
            for each in (section, *section.named("from-feature")):
                texts = [child.text for child in each.children if child.name != "from-feature"]
                draft.criteria += [text for text in texts or _listed(each.text) if text]


def _take_files(draft: Draft, task: Element) -> None:
    for section in task.named(*_FILES):
        files = [child.attributes.get("path") or child.text for child in section.children]
        for line in files or section.text.split("\n"):
            path = path_in(line.strip().removeprefix("- "))
            draft.files += [path] if path else []
            draft.creates += [path] if path and section.name == "files-to-create" else []


def _take_steps(draft: Draft, task: Element) -> None:
    for section in task.named("verification"):
        for step in section.children:
            if step.name in ("command", "check", "cmd"):
                draft.checks += [step.text.strip("` ")] if step.text.strip("` ") else []
            elif "\n```" in step.text:
                document = markdown.parse(step.text)
                draft.take_steps(document, document.blocks, step.line - 1)
            else:
                draft.take_step(step.line, step.text)
        if not section.children:
            document = markdown.parse(section.text)
            draft.take_steps(document, document.blocks, section.line)


def _listed(text: str) -> list[str]:
    """The items of a section that has no elements, else all of it."""
    document = markdown.parse(text)
    return listed(document, document.blocks) or [text]


def _move(draft: Draft, folder: str, line: int) -> None:
    """Run its commands in the folder it names."""
    folder = folder.strip().rstrip("/")
    if folder in ("", "."):
        return
    if not _INSIDE.fullmatch(folder) or ".." in folder.split("/"):
        cure = "name a folder inside the project, such as 'packages/api'"
        raise PlanError(f"<cwd> cannot be {folder!r}", path=draft.path, line=line, hint=cure)
    draft.checks = [f"cd {shlex.quote(folder)} && {{ {each}\n}}" for each in draft.checks]
