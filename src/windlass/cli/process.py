"""What the command line does to its own process. No other module changes `os.environ`."""

import os

_KEPT = ("PATH", "LANG", "TERM")


def forget_secrets() -> None:
    """Leave nothing in this process's own environment for a child to inherit by mistake.

    Each command has taken the environment that it works with by then.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
