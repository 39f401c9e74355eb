"""Which journals there are: one that may not be looked at is not lost, nor told as such."""

from pathlib import Path

from windlass.errors import RepositoryError


def plans_with_journals(home: Path) -> list[str]:
    """The ids of plans that have one; one that is hidden counts, and is told once it is read."""
    try:
        folders = list((home / "plans").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as error:
        raise _hidden(home, error) from None
    return sorted(folder.name for folder in folders if _may_be_there(folder / "journal.db"))


def is_there(journal: Path) -> bool:
    """Whether there is such a file; raises where nobody may look."""
    try:
        journal.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError as error:
        raise _hidden(journal, error) from None
    return True


def _may_be_there(journal: Path) -> bool:
    try:
        return is_there(journal)
    except RepositoryError:
        return True


def _hidden(place: Path, error: OSError) -> RepositoryError:
    return RepositoryError(
        f"{place} cannot be read: {error.strerror}",
        hint="run this as whoever it belongs to, or have them let you read it",
    )
