"""How long `windlass --help` takes, and `windlass run` to its first word on a terminal.

Both against `python -c pass` in the same run, turn about; and that --help imports nothing heavy.
"""

import os
import pty
import statistics
import subprocess
import sys
import time

BOUND = 6.0
FIRST_WORD = 0.3
"""Seconds until the first word, on a machine that starts a bare Python in 20 ms."""
BARE = 0.02
HEAVY = (
    "anyio",
    "asyncio",
    "claude_agent_sdk",
    "markdown_it",
    "mcp",
    "msgspec",
    "rich",
    "sqlite3",
    "starlette",
    "uvicorn",
)


def spent(*argv: str) -> float:
    begin = time.monotonic()
    subprocess.run([sys.executable, *argv], check=True, capture_output=True)
    return time.monotonic() - begin


def first_word() -> float:
    """Seconds until `windlass run` says anything on a terminal; there is no such plan."""
    far, near = pty.openpty()
    begin = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "windlass", "run", "no-such-plan.md"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=near,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(near)
        os.read(far, 1)
        spent = time.monotonic() - begin
        while True:
            try:
                if not os.read(far, 4096):
                    break
            except OSError:
                break
        process.wait()
    os.close(far)
    return spent


def heavy_modules() -> list[str]:
    code = (
        "import sys\n"
        "from windlass.cli.main import call\n"
        "call(['--help'])\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return sorted({name.partition(".")[0] for name in done.stderr.split()} & set(HEAVY))


def main() -> int:
    rounds = 25
    bare: list[float] = []
    helped: list[float] = []
    heard: list[float] = []
    for _ in range(rounds):
        bare.append(spent("-c", "pass"))
        helped.append(spent("-m", "windlass", "--help"))
        heard.append(first_word())
    ratio = statistics.median(h / b for h, b in zip(helped, bare, strict=True))
    first = statistics.median(h / b for h, b in zip(heard, bare, strict=True))
    heavy = heavy_modules()
    print(f"start-up, {rounds} rounds")
    print(f"{'python -c pass':20}{statistics.median(bare) * 1000:>8.1f} ms")
    print(f"{'windlass --help':20}{statistics.median(helped) * 1000:>8.1f} ms")
    print(f"{'run, first word':20}{statistics.median(heard) * 1000:>8.1f} ms")
    print(f"{'ratio --help':20}{ratio:>8.2f}")
    print(f"{'ratio first word':20}{first:>8.2f}, at most {FIRST_WORD / BARE:.0f}")
    print(f"heavy modules imported: {', '.join(heavy) or 'none'}")
    held = ratio <= BOUND and not heavy and first <= FIRST_WORD / BARE
    print(f"bound {BOUND}: {'held' if held else 'BROKEN'}")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
