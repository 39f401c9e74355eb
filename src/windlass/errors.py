"""Every error Windlass raises on purpose; each says what, where, and the cure.

WindlassError
├── BadInput                the caller can mend it: exit 2
│   ├── PlanError           a plan that cannot be understood, with file:line
│   ├── ConfigError         a setting nobody knows, or out of its bounds
│   └── RepositoryError     a repository Windlass cannot work in
│       └── UnsafePath      a link or a special file where Windlass is to write or read
├── Unanswered              a question that nobody is there to answer: exit 3
│   └── NoWalls             no sandbox with walls works here, and going without was not said
├── Busy                    another run of this plan holds the lock: exit 5
├── Interrupted             a run that could not go on, and can be resumed: exit 4
├── JournalError
│   ├── JournalUnwritable   the disk takes no more of it: exit 4
│   │   └── JournalGone     its file was deleted or replaced while a run wrote to it
│   ├── JournalConflict     a second writer was there first
│   ├── JournalDamaged      the record does not agree with itself, or with git: exit 3
│   └── JournalTooNew       written by a newer Windlass
├── SetupFailed             the commands that prepare a checkout did not do so
├── GitFailed               git answered what it should not have
├── Trespass                something outside a workspace was changed
└── IllegalEvent            an event that the state's table does not allow: a defect of Windlass
"""

from typing import ClassVar

_HEAD, _TAIL = 300, 150
"""Of a message that quotes more than anyone reads; its cure must stay in sight."""


class WindlassError(Exception):
    """Something Windlass cannot go on from; `hint` is the cure."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class BadInput(WindlassError):
    """What the caller gave cannot be used; nothing was changed."""

    exit_code = 2


class PlanError(BadInput):
    """A plan that cannot be understood."""

    def __init__(self, message: str, *, path: str = "", line: int = 0, hint: str = "") -> None:
        where = f"{path}:{line}: " if path and line else f"{path}: " if path else ""
        if len(message) > _HEAD + _TAIL:
            message = f"{message[:_HEAD]} … {message[-_TAIL:]}"
        super().__init__(where + message, hint=hint)
        self.path = path
        self.line = line


class ConfigError(BadInput):
    """A setting nobody reads, or a value out of its bounds."""


class RepositoryError(BadInput):
    """A repository that Windlass cannot work in."""


class UnsafePath(RepositoryError, OSError):
    """A link or a special file where Windlass is to write or read; an OSError to who writes."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.strerror = str(self)


class Unanswered(WindlassError):
    """A question that nobody is there to answer."""

    exit_code = 3


class NoWalls(Unanswered):
    """No sandbox with walls works here, and no one has said to go without."""


class Busy(WindlassError):
    """Another run of this plan holds the lock."""

    exit_code = 5


class Interrupted(WindlassError):
    """A run that could not go on; nothing recorded is lost, and it can be resumed."""

    exit_code = 4


class JournalError(WindlassError):
    """The journal cannot be used as it is."""


class JournalUnwritable(JournalError):
    """The journal is whole, and the disk takes no more of it."""

    exit_code = 4


class JournalGone(JournalUnwritable):
    """The journal's file is not there any more, or another is in its place."""


class JournalConflict(JournalError):
    """Somebody else appended first; this writer must not go on."""

    exit_code = 5


RECOVER = (
    "put a good copy back, or let `windlass recover` rebuild it from what git holds: commits stay"
    " pinned"
)
"""What to do about a journal that cannot be trusted."""


class JournalDamaged(JournalError):
    """The journal does not agree with itself, or with git, from `position` on.

    Nobody but a person can say which of them is right.
    """

    exit_code = 3

    def __init__(self, message: str, *, position: int, why: str = "") -> None:
        super().__init__(message, hint=f"{why}; {RECOVER}" if why else RECOVER)
        self.position = position


class JournalTooNew(JournalError):
    """The journal was written by a newer Windlass."""

    exit_code = 2


class SetupFailed(WindlassError):
    """The project's setup commands did not prepare a checkout."""


class GitFailed(WindlassError):
    """A git command answered what it should not have."""

    def __init__(self, argv: tuple[str, ...], code: int, stderr: str) -> None:
        said = stderr.strip().splitlines()
        super().__init__(
            f"`git {' '.join(argv)}` failed with {code}: {said[-1] if said else _silent(code)}",
            hint="`windlass doctor` looks at the repository",
        )
        self.argv = argv
        self.code = code
        self.stderr = stderr


def _silent(code: int) -> str:
    """What is known of a git that said nothing."""
    return f"it was ended by signal {-code}" if code < 0 else "no message"


class Trespass(WindlassError):
    """Something outside a task's workspace was changed while agents ran."""


class IllegalEvent(WindlassError):
    """An event that cannot follow from the state it met; always a defect of Windlass."""
