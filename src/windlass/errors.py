"""Every error Windlass raises on purpose; each says what, where, and the cure.

WindlassError
├── BadInput
│   ├── PlanError
│   ├── ConfigError
│   └── RepositoryError
│       └── UnsafePath
├── Unanswered
│   └── NoWalls
├── Busy
├── Interrupted
├── JournalError
│   ├── JournalUnwritable
│   │   └── JournalGone
│   ├── JournalConflict
│   ├── JournalDamaged
│   └── JournalTooNew
├── SetupFailed
├── GitFailed
├── Trespass
└── IllegalEvent

The exit code of each is in `views/outcome.py`.
"""

_HEAD, _TAIL = 300, 150
"""Characters kept of a long message, so that the cure after it stays visible."""


class WindlassError(Exception):
    """Windlass cannot continue; `hint` is the cure."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class BadInput(WindlassError):
    """The input cannot be used; nothing was changed."""


class PlanError(BadInput):
    """A plan cannot be parsed; names the file and line."""

    def __init__(self, message: str, *, path: str = "", line: int = 0, hint: str = "") -> None:
        where = f"{path}:{line}: " if path and line else f"{path}: " if path else ""
        if len(message) > _HEAD + _TAIL:
            message = f"{message[:_HEAD]} … {message[-_TAIL:]}"
        super().__init__(where + message, hint=hint)
        self.path = path
        self.line = line


class ConfigError(BadInput):
    """An unknown setting, or a value out of bounds."""


class RepositoryError(BadInput):
    """Windlass cannot work in this repository."""


class UnsafePath(RepositoryError, OSError):
    """A link or a special file is where Windlass must read or write; also an OSError."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.strerror = str(self)


class Unanswered(WindlassError):
    """A question needs an answer, and there is no terminal to ask at."""


class NoWalls(Unanswered):
    """No sandbox with walls works here, and running without one was not allowed."""


class Busy(WindlassError):
    """Another run of this plan holds the lock."""


class Interrupted(WindlassError):
    """A run was cut short; nothing recorded is lost, and it can be resumed."""


class JournalError(WindlassError):
    """The journal cannot be used as it is."""


class JournalUnwritable(JournalError):
    """The journal is intact, but the disk accepts no more writes."""


class JournalGone(JournalUnwritable):
    """The journal's file was deleted or replaced while a run wrote to it."""


class JournalConflict(JournalError):
    """Another process appended first; this one must stop writing."""


RECOVER = (
    "put a good copy back, or run `windlass recover` to rebuild it from git; commits stay pinned"
)
"""The cure for a damaged journal."""


class JournalDamaged(JournalError):
    """The journal contradicts itself or git from `position` on; a person must decide."""

    def __init__(self, message: str, *, position: int, why: str = "") -> None:
        super().__init__(message, hint=f"{why}; {RECOVER}" if why else RECOVER)
        self.position = position


class JournalTooNew(JournalError):
    """The journal was written by a newer Windlass."""


class SetupFailed(WindlassError):
    """The project's setup commands failed in a checkout."""


class GitFailed(WindlassError):
    """A git command failed."""

    def __init__(self, argv: tuple[str, ...], code: int, stderr: str) -> None:
        lines = stderr.strip().splitlines()
        silent = f"killed by signal {-code}" if code < 0 else "no message"
        super().__init__(
            f"`git {' '.join(argv)}` failed with {code}: {lines[-1] if lines else silent}",
            hint="`windlass doctor` checks the repository",
        )
        self.argv = argv
        self.code = code
        self.stderr = stderr


class Trespass(WindlassError):
    """Files outside a task's workspace changed while agents ran."""


class IllegalEvent(WindlassError):
    """An event is not allowed in this state; always a bug in Windlass."""
