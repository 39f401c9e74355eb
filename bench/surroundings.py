"""What every bench with real git has around it: an identity, no configuration, and durability."""

import os

DURABLE = ("-c", "core.fsync=committed", "-c", "core.fsyncMethod=batch", "-c", "gc.auto=0")
ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{
        f"GIT_{who}_{what}": "bench@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}
