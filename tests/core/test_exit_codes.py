"""Every error of Windlass and every end of a run has one exit code."""

import inspect

import pytest

from windlass import errors
from windlass.core.events.model import RunEnd
from windlass.views.outcome import EXIT_CODES, Exit, error_code

ERRORS = [each for _, each in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize(
    "kind", [each for each in ERRORS if issubclass(each, errors.WindlassError)]
)
def test_every_error_has_a_code_of_its_own_or_of_its_base(kind: type[errors.WindlassError]):
    code = error_code(kind)
    assert code is not Exit.COMPLETED
    [base, *_] = [b for b in kind.__bases__ if issubclass(b, errors.WindlassError)] or [kind]
    if base is not kind and error_code(base) is not Exit.FAILED:
        assert code is error_code(base), "a special error has the code of the general one"


def test_the_codes_are_the_contract():  # DESIGN: exit codes
    assert {code.name: code.value for code in Exit} == {
        "COMPLETED": 0,
        "FAILED": 1,
        "BAD_INPUT": 2,
        "NEEDS_HUMAN": 3,
        "STOPPED": 4,
        "BUSY": 5,
        "LIMIT": 6,
    }
    assert EXIT_CODES.keys() == set(RunEnd)
    assert error_code(errors.BadInput) is Exit.BAD_INPUT
    assert error_code(errors.Interrupted) is Exit.STOPPED
    assert error_code(errors.Busy) is Exit.BUSY
