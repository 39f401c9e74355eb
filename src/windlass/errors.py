"""Every error Windlass raises on purpose; each says what, where, and the cure.

WindlassError
├── BadInput
│   ├── PlanError
│   ├── ConfigError
│   └── RepositoryError
│       └── UnsafePath
├── Unanswered
│   └── NoWalls
├── Declined
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
│   └── SigningFailed
├── Trespass
└── IllegalEvent

The exit code of each is in `views/outcome.py`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.findings import Finding

_HEAD, _TAIL = 300, 150
"""Characters kept of a long message, so that the cure after it stays visible."""


class WindlassError(Exception):
    """Windlass cannot continue; `hint` is the cure."""

    def __init__(self, message: str, *, where: str = "", about: str = "", hint: str = "") -> None:
        """The place is a file with its line, a variable, a plan or a task.

        `where` is put before the message, `about` is a place that the message names itself.
        """
        self.message = f"{where}: {message}" if where else message
        super().__init__(self.message)
        self.what = message
        self.where = where or about
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class BadInput(WindlassError):
    """The input cannot be used; nothing was changed."""


class PlanError(BadInput):
    """A plan cannot be used; names the file and line of the first error, and has all findings."""

    def __init__(self, message: str, *, path: str = "", line: int = 0, hint: str = "") -> None:
        where = f"{path}:{line}" if path and line else path
        if len(message) > _HEAD + _TAIL:
            message = f"{message[:_HEAD]} … {message[-_TAIL:]}"
        super().__init__(message, where=where, hint=hint)
        self.path = path
        self.line = line
        self._findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, findings: "tuple[Finding, ...]") -> "PlanError":
        """One error for all that is wrong in a plan; the first of the findings is an error."""
        first = findings[0]
        error = cls(first.text, path=first.path, line=first.line, hint=first.suggestion)
        error._findings = findings
        return error

    @property
    def findings(self) -> "tuple[Finding, ...]":
        """All that is wrong or odd in the plan, the error itself first."""
        # Not imported above: a command greets before it imports more than this module.
        from windlass.findings import Finding  # noqa: PLC0415

        return self._findings or (
            Finding(
                path=self.path,
                line=self.line,
                severity="error",
                text=self.what,
                suggestion=self.hint,
            ),
        )


class ConfigError(BadInput):
    """An unknown setting, or a value out of bounds."""


class RepositoryError(BadInput):
    """Windlass cannot work in this repository."""


class UnsafePath(RepositoryError, OSError):
    """A link or a special file is where Windlass must read or write; also an OSError."""

    def __init__(self, message: str, *, where: str = "", about: str = "", hint: str = "") -> None:
        super().__init__(message, where=where, about=about, hint=hint)
        self.strerror = str(self)


class Unanswered(WindlassError):
    """A question needs an answer, and there is no terminal to ask at."""


class NoWalls(Unanswered):
    """No sandbox with walls works here, and running without one was not allowed."""


class Declined(WindlassError):
    """A person was asked, and did not agree."""


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

    def __init__(self, message: str, *, position: int, about: str = "", why: str = "") -> None:
        super().__init__(message, about=about, hint=f"{why}; {RECOVER}" if why else RECOVER)
        self.position = position


class JournalTooNew(JournalError):
    """The journal was written by a newer Windlass."""


MEND_SETUP = "mend [workspace] setup in windlass.toml, or install what is missing"
"""The cure for a setup that fails."""


class SetupFailed(WindlassError):
    """The project's setup commands failed in a checkout."""

    def __init__(
        self,
        message: str,
        *,
        command: str,
        exit_code: int | None,
        output: str,
        seconds: float = 0.0,
        timed_out: bool = False,
    ) -> None:
        super().__init__(message, hint=MEND_SETUP)
        self.command = command
        self.exit_code = exit_code
        self.output = output
        self.seconds = seconds
        self.timed_out = timed_out


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


class SigningFailed(GitFailed):
    """The user's own program did not sign a commit; nothing was written."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(("commit-tree", "-S"), 1, "")
        self.message = message
        self.hint = hint


class Trespass(WindlassError):
    """Files outside a task's workspace changed while agents ran."""


class IllegalEvent(WindlassError):
    """An event is not allowed in this state; always a bug in Windlass."""
