"""A stream that has lost its reader takes all that is written to it, and says so once."""

import os
import pty

import pytest

from windlass.cli.screens.terminal import LastingStream


def test_a_pipe_that_nobody_reads():
    there, here = os.pipe()
    os.close(there)
    left: list[str] = []
    with os.fdopen(here, "w") as stream:
        lasting = LastingStream(stream, lambda: left.append("left"))
        for _ in range(3):
            lasting.write("x" * 100_000)
            lasting.flush()
    assert left == ["left"]


def test_a_terminal_that_is_gone_is_told_by_a_signal_alone():
    far, near = pty.openpty()
    left: list[str] = []
    with os.fdopen(near, "w") as stream:
        lasting = LastingStream(stream, lambda: left.append("left"))
        assert lasting.isatty()
        os.close(far)
        lasting.write("x\n")
        lasting.flush()
    assert left == []


def test_any_other_trouble_is_trouble():
    with open("/dev/full", "w") as stream:  # noqa: PTH123
        lasting = LastingStream(stream, lambda: None)
        lasting.write("x")
        with pytest.raises(OSError, match="No space left"):
            lasting.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
