"""`windlass selftest`."""

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from windlass.cli.rehearsals.series import Stands
    from windlass.cli.rehearsals.sweep import Finding

SHARES = {
    "killed": 1.0,
    "killed twice": 0.5,
    "power lost": 1.0,
    "disk full, failing or read-only": 0.5,
}
"""How many points each kind gets of what was asked for."""

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


@click.command("selftest", short_help="Prove on this machine that a crash loses nothing")
@click.argument("what", type=click.Choice(["crash"]))
@click.option("--points", callback=_points, default="40", show_default=True, metavar="N|all",
              help="Kill at N points, or at every call; half as many twice, and so on")  # fmt: skip
@click.option("--seed", type=int, default=0, metavar="N", help="Choose other points")
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bwrap", "checkout", "none"]),
    default="auto",
    help="Rehearse at this level  [default: the strongest with walls]",
)
def command(what: str, points: int, seed: int, sandbox: str) -> int:
    """Prove on this machine that a crash loses nothing.

    A small plan is run again and again in a temporary repository: with parallel tasks, turns sent
    back, a conflict, merges and a state file, with real git and a scripted agent. It is killed at
    file system calls of Windlass and of its git, in the middle of writes too; again while it
    resumes; its power goes, and what was not synced with it; its disk is full, fails, or becomes
    read-only. Then it is resumed, and must end as if nothing had happened: the same files, each
    task merged once, each cost counted once, nothing left to mend, nothing left running.

    Needs no key and no network. With a C compiler (`cc`) every call is seen; without one only those
    that Python makes, and a power loss cannot be tried.
    """
    from windlass.cli.rehearsals.series import Stands
    from windlass.cli.walls import settle_rehearsal

    sandbox = settle_rehearsal(sandbox, os.environ, f"windlass selftest {what}")
    with Stands(min(os.cpu_count() or 1, 4), level=sandbox) as stands:
        if not stands.sees_all:
            click.echo("No C compiler: only points that Python itself tells of are tried.")
        broken = [
            _swept(stands, kind, max(1, int(points * share)), seed)
            for kind, share in SHARES.items()
        ]
    return int(any(broken))


def _swept(stands: "Stands", kind: str, count: int, seed: int) -> bool:
    """Sweep one kind, tell how it went, and whether anything broke."""
    if kind == "power lost" and not stands.sees_all:
        click.echo(f"{kind:34}not tried")
        return False
    findings: list[Finding] = []
    with click.progressbar(
        length=min(count, stands.calls), label=f"{kind:32}", show_pos=True
    ) as bar:
        for finding in stands.sweep(kind, count, seed):
            findings.append(finding)
            bar.update(1)
    points, broken = tally(findings)
    held = points - len(broken)
    click.echo(f"{kind:34}{points:5} points  {held:5} held  {len(broken):5} broken")
    for finding in broken[:SHOWN]:
        click.echo(f"  {finding.name}: {'; '.join(finding.faults)}")
        for line in finding.said.splitlines()[-SHOWN:]:
            click.echo(f"    {line.strip()}")
    return bool(broken) or not points


def tally(findings: "list[Finding]") -> "tuple[int, list[Finding]]":
    """How many points count, and which broke; one that was not reached counts where it broke."""
    broken = [finding for finding in findings if finding.faults]
    missed = sum(not finding.reached and not finding.faults for finding in findings)
    return len(findings) - missed, broken
