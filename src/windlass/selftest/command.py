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

    from windlass.selftest.series import Stands
    from windlass.selftest.sweep import Finding

SHARES = {
    "killed": 1.0,
    "killed twice": 0.5,
    "power lost": 1.0,
    "disk full, failing or read-only": 0.5,
}
"""How many points each kind gets of what was asked for."""

COMMAND_SHARES = {
    "killed": 1.0,
    "killed twice": 0.25,
    "git killed": 0.5,
    "power lost": 0.5,
    "disk": 0.5,
}
"""The same for a command."""

_SEEN_ONLY = frozenset({"power lost", "git killed"})
"""What can only be tried where every call is seen."""
_FEWER = "No C compiler: only points that Python itself tells of are tried."

ALL = 1_000_000_000
"""More points than any run has; where there are no more, all are taken."""

SHOWN = 5
"""How many broken points of a kind are told in full."""


def _points(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    if value == "all":
        return ALL
    if not value.isdecimal() or not int(value):
        raise click.BadParameter("a number from 1 on, or `all`")
    return int(value)


def _commands(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    if value is None:
        return ()
    from windlass.selftest.scenes import COMMANDS

    if value != "all" and value not in COMMANDS:
        raise click.BadParameter(f"one of {', '.join(COMMANDS)}, or `all`")
    return COMMANDS if value == "all" else (value,)


@click.command("selftest")
@click.argument("what", type=click.Choice(["crash"]))
@click.option("--command", "commands", callback=_commands, metavar="NAME|all",
              help="Break this command instead of a run, or each one that writes")  # fmt: skip
@click.option("--points", callback=_points, default="40", show_default=True, metavar="N|all",
              help="Kill at N points, or at every call; half as many twice, and so on")  # fmt: skip
@click.option("--seed", type=int, default=0, metavar="N", help="Choose other points")
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bwrap", "checkout", "none"]),
    default="auto",
    help="Rehearse at this level  [default: the strongest with walls]",
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

    A small plan is run again and again in a temporary repository: with parallel tasks, turns sent
    back, a conflict, merges and a state file, with real git and a scripted agent. It is killed at
    file system calls of Windlass and of its git, in the middle of writes too; again while it
    resumes; its power goes, and what was not synced with it; its disk is full, fails, or becomes
    read-only. Then it is resumed, and must end as if nothing had happened: the same files, each
    task merged once, each cost counted once, nothing left to mend, nothing left running.

    With --command the same is done to a command that writes: land, pr, take, give, reset, retry,
    clean, adopt, recover, abort or init; also, its git alone is killed while Windlass goes on. The
    command is called again, and must come to the end of an unbroken one. It must lose nothing that
    was recorded, leave no lock, and never touch the work that you have lying about.

    Needs no key and no network. With a C compiler (`cc`) every call is seen; without one only those
    that Python makes, and a power loss cannot be tried.

    \b
    windlass selftest crash
    windlass selftest crash --command land --points all
    windlass selftest crash --command all --json
    """  # noqa: D301
    workers = min(os.cpu_count() or 1, 4)
    from windlass.app.sandbox_level import settle_rehearsal
    from windlass.cli.person import person
    from windlass.selftest.series import Stands

    sandbox = settle_rehearsal(sandbox, os.environ, f"windlass selftest {what}", person())
    if commands:
        return _swept_commands(commands, points, seed, sandbox, workers, as_json=as_json)
    with Stands(workers, level=sandbox) as stands:
        if not stands.sees_all:
            click.echo(_FEWER, err=as_json)
        rows = [
            _swept(stands, kind, max(1, int(points * share)), seed, aside=as_json)
            for kind, share in SHARES.items()
        ]
    if as_json:
        told = [row.told() for row in rows]
        click.echo(json.dumps({"run": told}, indent=2))
    return int(any(row.is_broken for row in rows))


class Row:
    """One kind of fault: how many points count, and which broke."""

    def __init__(self, kind: str, findings: "list[Finding]", *, tried: bool = True) -> None:
        self.kind = kind
        self.points, self.broken = tally(findings)
        self.tried = tried

    @property
    def is_broken(self) -> bool:
        """Whether a point broke, or none was tried that could have been.

        What is called a second time may have nothing left to do, and then cannot be killed.
        """
        missed = not self.points and self.kind != "killed twice"
        return self.tried and (bool(self.broken) or missed)

    def told(self) -> dict[str, object]:
        """For programs."""
        broken = [{"point": each.name, "faults": list(each.faults)} for each in self.broken]
        return {"fault": self.kind, "points": self.points, "broken": broken}


def _swept_commands(
    commands: tuple[str, ...], points: int, seed: int, level: str, workers: int, *, as_json: bool
) -> int:
    """Sweep the scenes of these commands, and show a table with a line for each."""
    from windlass.selftest.commands import KINDS, CommandStands
    from windlass.selftest.scenes import SCENES
    from windlass.selftest.series import side_by_side

    told: list[dict[str, object]] = []
    any_broken = False
    with CommandStands(workers, level=level) as places:
        if not places.sees_all:
            click.echo(_FEWER, err=as_json)
        if not as_json:
            click.echo(f"{'command':30}{'calls':>7}{''.join(f'{kind:>14}' for kind in KINDS)}")
        for scene in (each for each in SCENES if each.command in commands):
            stands = places.set_up(scene)
            rows: list[Row] = []
            for kind, go in KINDS.items():
                tried = places.sees_all or kind not in _SEEN_ONLY
                count = max(1, int(points * COMMAND_SHARES[kind]))
                found = side_by_side([partial(go, stand) for stand in stands], count, seed)
                length = min(count, stands[0].calls)
                findings = _watched(found, f"{scene.name}: {kind}", length) if tried else []
                rows.append(Row(kind, findings, tried=tried))
            any_broken = any_broken or any(row.is_broken for row in rows)
            told.append(
                {
                    "command": scene.command,
                    "scene": scene.name,
                    "calls": stands[0].calls,
                    "faults": [row.told() for row in rows],
                }
            )
            if not as_json:
                _show_line(scene.name, stands[0].calls, rows)
    points_in_all = sum(row["points"] for each in told for row in each["faults"])  # type: ignore[attr-defined,index]
    if as_json:
        click.echo(json.dumps({"commands": told}, indent=2))
    else:
        click.echo(f"{points_in_all} points, {'some' if any_broken else 'none'} broken")
    return int(any_broken)


def _show_line(name: str, calls: int, rows: list[Row]) -> None:
    """How a command held: points, and how many of them broke where any did."""
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


def _watched(findings: "Iterator[Finding]", label: str, length: int) -> "list[Finding]":
    """All findings, with a progress bar on a terminal."""
    seen: list[Finding] = []
    with click.progressbar(
        length=length, label=f"{label:46}", show_pos=True, file=sys.stderr
    ) as bar:
        for finding in findings:
            seen.append(finding)
            bar.update(1)
    return seen


def _swept(stands: "Stands", kind: str, count: int, seed: int, *, aside: bool) -> Row:
    """Sweep one kind, and tell how it went."""
    if kind == "power lost" and not stands.sees_all:
        click.echo(f"{kind:34}not tried", err=aside)
        return Row(kind, [], tried=False)
    found = stands.sweep(kind, count, seed)
    row = Row(kind, _watched(found, kind, min(count, stands.calls)))
    if not aside:
        held = row.points - len(row.broken)
        told = f"{row.points:5} points  {held:5} held  {len(row.broken):5} broken"
        click.echo(f"{kind:34}{told}")
        _show_broken(row.broken)
    return row


def _show_broken(broken: "list[Finding]") -> None:
    for finding in broken[:SHOWN]:
        click.echo(f"  {finding.name}: {'; '.join(finding.faults)}")
        for line in finding.said.splitlines()[-SHOWN:]:
            click.echo(f"    {line.strip()}")


def tally(findings: "list[Finding]") -> "tuple[int, list[Finding]]":
    """How many points count, and which broke; one that was not reached counts where it broke."""
    broken = [finding for finding in findings if finding.faults]
    missed = sum(not finding.reached and not finding.faults for finding in findings)
    return len(findings) - missed, broken
