"""What commits say: a subject that begins with the task's id, and trailers for a recovery."""

from windlass.ports import Authorship

_SUBJECT = 72


def message(author: Authorship, run: str, *, merging: bool) -> str:
    """The message of a snapshot or a merge."""
    # Git refuses some control characters, and a terminal obeys others.
    title = " ".join("".join(c if c.isprintable() else " " for c in author.title).split())
    about = f"{author.task}: " if author.task else ""
    subject = f"{about}{'merge ' if merging else ''}{title}"
    if len(subject) > _SUBJECT:
        subject = subject[: _SUBJECT - 1].rstrip() + "…"
    if not author.task:
        return f"{subject[0].upper()}{subject[1:]}\n\nWindlass-Run: {run}\n"
    text = f"Windlass-Text: {author.text}\n" if merging and author.text else ""
    return (
        f"{subject}\n\n"
        f"Windlass-Run: {run}\n"
        f"Windlass-Task: {author.task}\n"
        f"Windlass-Turn: {author.turn}\n"
        f"{text}"
    )
