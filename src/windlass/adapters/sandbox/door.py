"""A door into a box: listeners on the box's own loopback that Windlass serves from outside.

Law: the box's program starts after its listeners stand, and never if they cannot be made.
Bubblewrap builds the box and waits; `enter.py` makes the listeners in the box's network; then
bubblewrap goes on. Nothing of the door lies in the box: no file, no socket with a name, no process.
"""

import os
import re
import select
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

import anyio.to_thread

from windlass.adapters.sandbox.enter import OPEN

HELPER = Path(__file__).with_name("enter.py")
PATIENCE = 30.0
"""Seconds that the helper may take: a machine may be very busy, and a hang must end."""


class DoorError(OSError):
    """The listeners of a box could not be made."""


class NoBox(DoorError):
    """There is no box: bubblewrap has ended, and says why itself."""


class Door:
    """Listeners for one box, from before it is built until it is gone."""

    def __init__(self, ports: tuple[int, ...]) -> None:
        """Take the ports to listen at."""
        self._ports = ports
        self._told, self._info = os.pipe()
        self._block, self._begin = os.pipe()
        self._channel, theirs = socket.socketpair()
        self._channel.settimeout(PATIENCE)
        self._listeners: list[socket.socket] = []
        # Started before the box, so that both come up at once.
        with theirs:
            self._helper = subprocess.Popen(
                [sys.executable, "-I", "-S", HELPER, str(theirs.fileno()), *map(str, ports)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    @property
    def arguments(self) -> tuple[str, ...]:
        """Give what bubblewrap is told about the door."""
        return ("--info-fd", str(self._info), "--block-fd", str(self._block))

    @property
    def inherited(self) -> tuple[int, ...]:
        """Give the descriptors that bubblewrap inherits for that."""
        return (self._info, self._block)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all that is open, and end the helper."""
        self.hand_over()
        for number in (self._told, self._begin):
            os.close(number)
        self._channel.close()
        for listener in self._listeners:
            listener.close()
        self._helper.kill()
        self._helper.wait()

    def hand_over(self) -> None:
        """Close the ends that the box now has, so that its end can be told."""
        for number in (self._info, self._block):
            if number >= 0:
                os.close(number)
        self._info = self._block = -1

    async def listen(self) -> dict[int, socket.socket]:
        """Return the listeners by port, once the box stands."""
        return await anyio.to_thread.run_sync(self._listen)

    def let_begin(self) -> None:
        """Let the box's program start."""
        with suppress(BrokenPipeError):  # it is gone already
            os.write(self._begin, b"+")

    def _listen(self) -> dict[int, socket.socket]:
        self._channel.send(self._first_process())
        word, numbers, _, _ = socket.recv_fds(self._channel, 512, len(self._ports))
        self._listeners = [socket.socket(fileno=number) for number in numbers]
        if word != OPEN or len(self._listeners) != len(self._ports):
            raise DoorError(word.decode(errors="replace") or "the helper ended")
        return dict(zip(self._ports, self._listeners, strict=True))

    def _first_process(self) -> bytes:
        """Read from bubblewrap, which writes it piece by piece, the number of the first process."""
        told = b""
        while (found := re.search(rb'"child-pid": ?(\d+)\D', told)) is None:
            if not select.select([self._told], [], [], PATIENCE)[0]:
                raise DoorError("bubblewrap says nothing")
            if not (more := os.read(self._told, 4096)):
                raise NoBox("the box was not built")
            told += more
        return found[1]
