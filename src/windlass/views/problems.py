"""An error, as people and programs are told of it: what, where, the cure and the exit code."""

from msgspec import Struct
from msgspec.structs import replace

from windlass.errors import PlanError, WindlassError
from windlass.views.outcome import Exit, error_code
from windlass.views.outlook import PlanFinding, plan_findings
from windlass.views.words import one_line

_LONGEST = 2000


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    what: str
    where: str
    """A file with its line, a variable, a plan, a task; else the command."""
    cure: str
    """What to do about it; empty if nobody can say."""
    exit: int
    """The exit code of the command."""
    findings: tuple[PlanFinding, ...] = ()
    """All that is wrong in a plan, this error first; only where there is more than this error."""


class ProblemDocument(Struct, frozen=True, kw_only=True):
    """What a command with --json prints on stdout if it fails."""

    error: Problem


_AGAIN = "fix that and try again; nothing recorded is lost"
_TRACEBACK = "nothing recorded is lost; WINDLASS_DEBUG=1 shows the traceback"


def error_line(error: BaseException) -> str:
    """The error in one line, for people."""
    match error:
        case WindlassError():
            text = str(error)
        case OSError():
            where = f": {error.filename}" if error.filename else ""
            text = f"{error.strerror or error}{where}; {_AGAIN}"
        case KeyboardInterrupt():
            text = "interrupted"
        case _:
            text = f"{_bug(error)}; {_TRACEBACK}"
    # It may quote a file name or git's output, which can hold any character.
    return one_line(text, _LONGEST)


def problem_of(error: BaseException, command: str) -> Problem:
    """The problem; `command` is the place of an error that names no other."""
    match error:
        case WindlassError():
            where, code = error.where or command, error_code(type(error))
            problem = _problem(error.what, where, error.hint, code)
            found = error.findings if isinstance(error, PlanError) else ()
            return replace(problem, findings=plan_findings(found) if len(found) > 1 else ())
        case OSError():
            where = str(error.filename) if error.filename else command
            return _problem(error.strerror or str(error), where, _AGAIN, Exit.STOPPED)
        case KeyboardInterrupt():
            cure = "run the command again; nothing recorded is lost"
            return _problem("interrupted", command, cure, Exit.STOPPED)
        case _:
            return _problem(_bug(error), command, _TRACEBACK, Exit.FAILED)


def _bug(error: BaseException) -> str:
    return f"a bug in Windlass, {type(error).__name__}: {error}"


def bad_usage(what: str, command: str) -> Problem:
    """The problem of a command line that cannot be understood."""
    return _problem(what, command, f"`{command} --help` shows its usage", Exit.BAD_INPUT)


def _problem(what: str, where: str, cure: str, code: Exit) -> Problem:
    what, where, cure = (one_line(text, _LONGEST) for text in (what, where, cure))
    return Problem(what=what, where=where, cure=cure, exit=int(code))
