"""Opens listeners in the network namespace of another process. A separate program.

A process that enters a user namespace cannot leave it again, so Windlass does not do this itself.
Started with `python -I -S`, it imports little: its start is part of every agent's.

    enter.py CHANNEL PORT...

It reads the pid from the channel, a UNIX socket, and sends the listeners back on it.
"""

import ctypes
import fcntl
import os
import socket
import sys

NS_GET_USERNS = 0xB701
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
BACKLOG = 128
OPEN = b"+"
"""Sent with the listeners; any other message is the error."""


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    number = channel.recv(32)
    if not number:
        return  # the box was never built
    listeners: list[socket.socket] = []
    try:
        enter(int(number))
        for port in sys.argv[2:]:
            listener = socket.socket()
            # Works even if the box's loopback is not up yet; the box has no other interface.
            listener.bind(("0.0.0.0", int(port)))  # noqa: S104
            listener.listen(BACKLOG)
            listeners.append(listener)
    except OSError as error:
        channel.send(f"{error}".encode())
        return
    socket.send_fds(channel, [OPEN], [listener.fileno() for listener in listeners])


def enter(process: int) -> None:
    """Enter the network namespace of the process, and first its user namespace."""
    network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
    owner = fcntl.ioctl(network, NS_GET_USERNS)
    if not os.path.samestat(os.fstat(owner), os.stat("/proc/self/ns/user")):  # noqa: PTH116
        _setns(owner, CLONE_NEWUSER)
    _setns(network, CLONE_NEWNET)


def _setns(number: int, kind: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(number, kind) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


if __name__ == "__main__":
    main()
