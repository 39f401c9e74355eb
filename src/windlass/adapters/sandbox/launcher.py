"""The box in the box: what an agent's program runs is kept from the program.

Law: a command reaches nothing of the program that runs it. It does not see the program's home, its
temporary files or its sockets, gets an environment in which there is nothing of the program's, and
has users of its own, so that the kernel lets it look into no process of the program. What a Coach
runs is the Player's code, and is sealed: it has no network but its own loopback, no processes but
its own, and cannot write the checkout's git directory, which the program's own git would obey.

One thing of the program's is needed: the file into which its shell writes the folder it ended in.
The launcher finds its name at the end of the command and binds that file alone.
"""

import shlex
import shutil
from collections.abc import Mapping, Sequence

from msgspec import Struct

AGENT = "/windlass-agent"
"""The program's own place in the box."""
AGENT_HOME = f"{AGENT}/home"
AGENT_TEMPORARY = f"{AGENT}/tmp"  # noqa: S108 (the program's alone)
LAUNCHER = f"{AGENT}/launch"
SHELL_ALONE = (shutil.which("bash", path="/usr/bin:/bin") or "/bin/sh", "-c")
"""What runs a command, where nothing more is laid around it."""

APART = ("--unshare-user",)
SEALED = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--new-session",
)
INNER: tuple[tuple[str, ...], ...] = (("--proc", "/proc"), ())
"""With a /proc of its own, or the outer one's: root's box has no full /proc to make another of."""

_SCRIPT = """\
command=$1
set --
folder=${{command##* >| }}
case $folder in
  {temporary}/*[!0-9A-Za-z-]*) ;;
  {temporary}/?*) : >> "$folder"; set -- --bind "$folder" "$folder" ;;
esac
exec /usr/bin/env -i {environment} {start} --tmpfs {agent} "$@" --remount-ro {agent} \\
  -- {shell} "$command"
"""


class Inner(Struct, frozen=True):
    """How a box in the box is built here."""

    program: str
    """Bubblewrap, by its path."""
    checkout: str
    proc: tuple[str, ...]

    def script(self, environment: Mapping[str, str], shell: Sequence[str], *, sealed: bool) -> str:
        """Write the program that runs its one argument, a shell command, in a box of its own."""
        git = f"{self.checkout}/.git"
        walls = (*SEALED, *self.proc, "--ro-bind-try", git, git) if sealed else APART
        return _SCRIPT.format(
            agent=AGENT,
            temporary=AGENT_TEMPORARY,
            environment=shlex.join(f"{name}={value}" for name, value in environment.items()),
            start=shlex.join((self.program, "--dev-bind", "/", "/", *walls)),
            shell=shlex.join(shell),
        )
