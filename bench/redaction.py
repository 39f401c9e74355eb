"""What it costs to take secrets out of 1 MB, beside the floor: one `str.replace` of one secret.

The texts are a log of words, hashes and paths, JSON that is full of escapes, base64, and the worst
that there is for a secret of one repeated letter: that letter. The number of secrets must not
matter, and twice the text must take twice the time.
"""

import argparse
import base64
import json
import random
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from windlass.core.secrets import Redactor

SIZE = 1_000_000
REPEAT = "a" * 4096
BOUND = 1_000
"""The most that any text may cost, as a multiple of the floor."""
MANY_BOUND = 4.0
"""The most that 200 secrets may cost, as a multiple of what one does."""
GROWTH_BOUND = 3.0
"""The most that twice the text may cost, as a multiple of what it costs once."""


def bundle(luck: random.Random, lines: int) -> str:
    """Certificates and their keys, as PEM has them."""
    body = (base64.b64encode(luck.randbytes(48)).decode() for _ in range(lines))
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"])


def environments() -> dict[str, dict[str, str]]:
    """What the secrets are, by the name of the case."""
    luck = random.Random(13)  # noqa: S311  nothing is secret about a bench
    tokens = {f"T{n}_TOKEN": f"tok-{luck.randbytes(18).hex()}" for n in range(200)}
    first = dict(list(tokens.items())[:20])
    return {
        "0 secrets": {},
        "1 secret": {"T0_TOKEN": tokens["T0_TOKEN"]},
        "20 secrets": first,
        "200 secrets": tokens,
        "200 of 8 letters": {name: value[-8:] for name, value in tokens.items()},
        "PEM of 30 lines": {"PEM_KEY": bundle(luck, 30)},
        "PEM of 4,096 lines": {"PEM_KEY": bundle(luck, 4096)},
        "one letter, 40 times": {"FLAT_KEY": REPEAT[:40]},
        "one letter, 4,096 times": {"FLAT_KEY": REPEAT},
    }


def texts(size: int) -> dict[str, str]:
    """Texts of that many characters, by their names."""
    luck = random.Random(7)  # noqa: S311
    words = ["error", "in", "src/windlass/adapters/git/store.py", "line 42,", "assert x == 1\n"]
    some = [*words, *(luck.randbytes(20).hex() for _ in range(40))]
    log = " ".join(luck.choices(some, k=size // 8))[:size]
    escaped = json.dumps([luck.choice(words) + '\n"quoted"\t' for _ in range(size // 16)])[:size]
    return {
        "log": log,
        "JSON": escaped,
        "base64": base64.encodebytes(luck.randbytes(size)).decode()[:size],
        "aaaa": "a" * size,
        "aaab": ("a" * 4095 + "b") * (size // 4096),
    }


def seconds(work: Callable[[], object], rounds: int) -> float:
    """The best of some rounds, in CPU time: other programs do not count."""
    taken: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def streamed(redactor: Redactor, data: bytes, size: int) -> None:
    """Redact what comes in pieces."""
    stream = redactor.stream()
    for at in range(0, len(data), size):
        stream.feed(data[at : at + size])
    stream.end()


def measure(rounds: int, size: int) -> bool:
    """Print a table; whether all bounds are kept."""
    given, twice = texts(size), texts(2 * size)
    floor = seconds(lambda: given["log"].replace("no-such-secret-is-here", "x"), rounds)
    print(f"floor: str.replace of one secret in {size:,} characters takes {floor * 1000:.2f} ms")
    print(f"{'in floors':28}" + "".join(f"{name:>9}" for name in given) + "   stream    build")
    rows = {
        case: row(case, environment, given, twice, floor, rounds)
        for case, environment in environments().items()
    }
    many = max(rows["200 secrets"].log, rows["PEM of 4,096 lines"].log) / rows["1 secret"].log
    worst = max(each.worst for each in rows.values())
    growth = max(each.growth for each in rows.values())
    print(f"many secrets cost {many:.1f} times what one does (at most {MANY_BOUND:g})")
    print(f"the worst text costs {worst:.0f} floors (at most {BOUND})")
    print(f"twice the text takes {growth:.1f} times as long (at most {GROWTH_BOUND:g})")
    return many <= MANY_BOUND and worst <= BOUND and growth <= GROWTH_BOUND


class Row(NamedTuple):
    """What one environment costs, in floors; and how much longer twice the text takes."""

    log: float
    worst: float
    growth: float


def row(
    case: str,
    environment: Mapping[str, str],
    given: Mapping[str, str],
    twice: Mapping[str, str],
    floor: float,
    rounds: int,
) -> Row:
    """Measure one environment, and print its line."""
    redactor = Redactor(environment)
    made = seconds(lambda: Redactor(environment), rounds)
    costs = {name: seconds(partial(redactor.text, text), rounds) for name, text in given.items()}
    stream = seconds(partial(streamed, redactor, given["log"].encode(), 80), rounds)
    shown = "".join(f"{each / floor:>9.1f}" for each in (*costs.values(), stream))
    print(f"{case:28}{shown}{made * 1000:>6.1f} ms", flush=True)
    doubled = {name: seconds(partial(redactor.text, text), rounds) for name, text in twice.items()}
    grown = max(doubled[name] / max(costs[name], floor) for name in given)
    return Row(costs["log"] / floor, max(*costs.values(), stream) / floor, grown)


def main() -> int:
    """Measure, and fail where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=SIZE)
    told = parser.parse_args()
    return 0 if measure(told.rounds, told.size) else 1


if __name__ == "__main__":
    sys.exit(main())
