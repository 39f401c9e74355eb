"""`windlass selftest`."""

import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from windlass.cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.selftest.series import RunTesters
    from windlass.selftest.sweep import Finding

SHARES = {
    "killed": 1.0,
    "killed twice": 0.5,
    "power lost": 1.0,
    "disk full, failing or read-only": 0.5,
}
"""The share of `--points` that each kind of fault gets."""

COMMAND_SHARES = {
    "killed": 1.0,
    "killed twice": 0.25,
    "git killed": 0.5,
    "power lost": 0.5,
    "disk": 0.5,
}
"""The same with `--command`."""

_SEEN_ONLY = frozenset({"power lost", "git killed"})
"""Faults that need every call to be seen."""
_FEWER = "No C compiler: only calls that Python itself makes are tried."

ALL = 1_000_000_000
"""More points than any run has, so all of them are taken."""

SHOWN = 5
"""How many broken points of a kind are shown in full."""


def _points(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    if value == "all":
        return ALL
    if not value.isdecimal() or not int(value):
        raise click.BadParameter("give a number of 1 or more, or `all`")
    return int(value)


def _commands(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    if value is None:
        return ()
    from windlass.selftest.scenes import COMMANDS

    if value != "all" and value not in COMMANDS:
        raise click.BadParameter(f"give one of {', '.join(COMMANDS)}, or `all`")
    return COMMANDS if value == "all" else (value,)


@click.command("selftest")
@click.argument("what", type=click.Choice(["crash"]))
@click.option("--command", "commands", callback=_commands, metavar="NAME|all",
              help="Break this command, or each one that writes, instead of a run")  # fmt: skip
@click.option("--points", callback=_points, default="40", show_default=True, metavar="N|all",
              help="Kill at N points, or at every call; other faults get a share")  # fmt: skip
@click.option("--seed", type=int, default=0, metavar="N", help="Choose other points")
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bwrap", "checkout", "none"]),
    default="auto",
    help="Use this sandbox level  [default: the strongest with walls]",
)
@json_option
def command(
    what: str,
    commands: tuple[str, ...],
    points: int,
    seed: int,
    sandbox: str,
    as_json: bool,  # noqa: FBT001
) -> int:
    """Prove on this machine that a crash loses nothing.

    Runs a small plan again and again in a temporary repository, with real git and a scripted agent:
    parallel tasks, turns sent back, a conflict, merges and a state file. Each run is killed at a
    file system call of Windlass or its git, or in the middle of a write; or killed again while it
    resumes; or loses power, and all that was not synced; or meets a disk that is full, fails or is
    read-only. Then it is resumed, and must end as if nothing had happened: the same files, each
    task merged once, each cost counted once, nothing to repair, no process left.

    With --command the same happens to a command that writes: land, pr, take, give, reset, retry,
    clean, adopt, recover, abort or init. Its git is also killed alone, while Windlass continues.
    The command is run again, and must end as it does without a fault. It must keep all that was
    recorded, leave no lock, and never touch your uncommitted work.

    Needs no key and no network. With a C compiler (`cc`) every call is seen; without one only
    Python's own calls, and power losses are not tried.

    \b
    Examples:
      windlass selftest crash
      windlass selftest crash --command land --points all
      windlass selftest crash --command all --json
    """  # noqa: D301
    workers = min(os.cpu_count() or 1, 4)
    from windlass.app.sandbox_level import settle_rehearsal
    from windlass.cli.person import person
    from windlass.selftest.series import RunTesters

    sandbox = settle_rehearsal(sandbox, os.environ, f"windlass selftest {what}", person())
    if commands:
        return _sweep_commands(commands, points, seed, sandbox, workers, as_json=as_json)
    with RunTesters(workers, level=sandbox) as testers:
        if not testers.sees_all:
            click.echo(_FEWER, err=as_json)
        rows = [
            _sweep_runs(testers, kind, max(1, int(points * share)), seed, as_json=as_json)
            for kind, share in SHARES.items()
        ]
    if as_json:
        click.echo(json.dumps({"run": [row.as_json() for row in rows]}, indent=2))
    return int(any(row.is_broken for row in rows))


class Row:
    """The points of one kind of fault, and which of them broke."""

    def __init__(self, kind: str, findings: "list[Finding]", *, tried: bool = True) -> None:
        self.kind = kind
        self.points, self.broken = tally(findings)
        self.tried = tried

    @property
    def is_broken(self) -> bool:
        """Whether a point broke, or no point was reached.

        A second call may have nothing left to do, and then it cannot be killed.
        """
        missed = not self.points and self.kind != "killed twice"
        return self.tried and (bool(self.broken) or missed)

    def as_json(self) -> dict[str, object]:
        """The row in the output of --json."""
        broken = [{"point": each.name, "faults": list(each.faults)} for each in self.broken]
        return {"fault": self.kind, "points": self.points, "broken": broken}


def _sweep_commands(
    commands: tuple[str, ...], points: int, seed: int, level: str, workers: int, *, as_json: bool
) -> int:
    """Sweep the scenes of these commands; print a table with a line for each scene."""
    from windlass.selftest.commands import KINDS, CommandTesters
    from windlass.selftest.scenes import SCENES
    from windlass.selftest.series import in_parallel

    scenes: list[dict[str, object]] = []
    any_broken = False
    points_in_all = 0
    with CommandTesters(workers, level=level) as places:
        if not places.sees_all:
            click.echo(_FEWER, err=as_json)
        if not as_json:
            click.echo(f"{'command':30}{'calls':>7}{''.join(f'{kind:>14}' for kind in KINDS)}")
        for scene in (each for each in SCENES if each.command in commands):
            testers = places.set_up(scene)
            rows: list[Row] = []
            for kind, series in KINDS.items():
                tried = places.sees_all or kind not in _SEEN_ONLY
                count = max(1, int(points * COMMAND_SHARES[kind]))
                found = in_parallel([partial(series, tester) for tester in testers], count, seed)
                length = min(count, testers[0].calls)
                findings = _with_progress(found, f"{scene.name}: {kind}", length) if tried else []
                rows.append(Row(kind, findings, tried=tried))
            any_broken = any_broken or any(row.is_broken for row in rows)
            points_in_all += sum(row.points for row in rows)
            scenes.append(
                {
                    "command": scene.command,
                    "scene": scene.name,
                    "calls": testers[0].calls,
                    "faults": [row.as_json() for row in rows],
                }
            )
            if not as_json:
                _show_line(scene.name, testers[0].calls, rows)
    if as_json:
        click.echo(json.dumps({"commands": scenes}, indent=2))
    else:
        click.echo(f"{points_in_all} points, {'some' if any_broken else 'none'} broken")
    return int(any_broken)


def _show_line(name: str, calls: int, rows: list[Row]) -> None:
    """Print a scene's line of the table, and the points that broke."""
    cells = [
        f"{row.points}, {len(row.broken)} broken"
        if row.broken
        else str(row.points)
        if row.tried
        else "not tried"
        for row in rows
    ]
    click.echo(f"{name:30}{calls:>7}{''.join(f'{cell:>14}' for cell in cells)}")
    for row in rows:
        _show_broken(row.broken)


def _with_progress(findings: "Iterator[Finding]", label: str, length: int) -> "list[Finding]":
    """Collect the findings, with a progress bar on a terminal."""
    seen: list[Finding] = []
    with click.progressbar(
        length=length, label=f"{label:46}", show_pos=True, file=sys.stderr
    ) as bar:
        for finding in findings:
            seen.append(finding)
            bar.update(1)
    return seen


def _sweep_runs(testers: "RunTesters", kind: str, count: int, seed: int, *, as_json: bool) -> Row:
    """Sweep runs with one kind of fault; without --json, print the result."""
    if kind == "power lost" and not testers.sees_all:
        click.echo(f"{kind:34}not tried", err=as_json)
        return Row(kind, [], tried=False)
    found = testers.sweep(kind, count, seed)
    row = Row(kind, _with_progress(found, kind, min(count, testers.calls)))
    if not as_json:
        held = row.points - len(row.broken)
        counts = f"{row.points:5} points  {held:5} held  {len(row.broken):5} broken"
        click.echo(f"{kind:34}{counts}")
        _show_broken(row.broken)
    return row


def _show_broken(broken: "list[Finding]") -> None:
    for finding in broken[:SHOWN]:
        click.echo(f"  {finding.name}: {'; '.join(finding.faults)}")
        for line in finding.output.splitlines()[-SHOWN:]:
            click.echo(f"    {line.strip()}")


def tally(findings: "list[Finding]") -> "tuple[int, list[Finding]]":
    """The number of points, and those that broke; points that were missed and held do not count."""
    broken = [finding for finding in findings if finding.faults]
    missed = sum(not finding.reached and not finding.faults for finding in findings)
    return len(findings) - missed, broken
