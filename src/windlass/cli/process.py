"""Changes to the command line's own process. No other module changes `os.environ`."""

import os

_KEPT = ("PATH", "LANG", "TERM", "TZ")


def forget_secrets() -> None:
    """Clear the environment, so that no child process inherits a secret by mistake.

    The command has copied the environment that it works with before.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
