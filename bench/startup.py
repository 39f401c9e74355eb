"""How long `windlass --help` takes, against `python -c pass`; and that it imports nothing heavy."""

import statistics
import subprocess
import sys
import time

BOUND = 6.0
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
    for _ in range(rounds):
        bare.append(spent("-c", "pass"))
        helped.append(spent("-m", "windlass", "--help"))
    ratio = statistics.median(h / b for h, b in zip(helped, bare, strict=True))
    heavy = heavy_modules()
    print(f"start-up, {rounds} rounds")
    print(f"{'python -c pass':20}{statistics.median(bare) * 1000:>8.1f} ms")
    print(f"{'windlass --help':20}{statistics.median(helped) * 1000:>8.1f} ms")
    print(f"{'ratio':20}{ratio:>8.2f}")
    print(f"heavy modules imported: {', '.join(heavy) or 'none'}")
    print(f"bound {BOUND}: {'held' if ratio <= BOUND and not heavy else 'BROKEN'}")
    return int(ratio > BOUND or bool(heavy))


if __name__ == "__main__":
    sys.exit(main())
