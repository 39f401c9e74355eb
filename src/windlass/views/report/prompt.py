"""What failed in a round as a prompt: enough for any agent, or person, to mend it."""

from windlass.views.quotation import DATA, quoted
from windlass.views.report.markup import harmless
from windlass.views.report.model import Round, TaskReport
from windlass.views.words import one_line


def prompt(task: TaskReport, each: Round, most: int) -> str:
    """The task, what it asks for, the commit that was judged, and what was found."""
    criteria = [f"{n}. {harmless(text, 1_000)}" for n, text in enumerate(task.criteria, 1)]
    commit = each.attempt.commit
    where = f" The work so far is commit {commit}." if commit else ""
    sent_back = f"Turn {each.attempt.turn} was sent back ({each.cause.replace('_', ' ')})."
    return "\n".join(
        (
            f"Mend task {task.id}: {one_line(task.title, 200)}",
            "",
            DATA,
            "",
            "It is done when:",
            *criteria,
            "",
            f"{sent_back}{where}",
            "What was found:",
            "",
            quoted("feedback", harmless(each.attempt.feedback or "", most)),
        )
    )
