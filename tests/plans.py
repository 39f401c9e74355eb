"""Plans and scripts for whole runs: each Player writes one file and reports it."""

from windlass.testing.model.script import Book, Script
from windlass.testing.sample import playing, reviewing, write

DIAMOND = {
    "a": (),
    "b": ("a",),
    "c": ("a",),
    "d": ("b", "c"),
}
SEQUENCE = {"1.1": (), "1.2": ("1.1",), "1.3": ("1.2",)}


def plan_text(tasks: dict[str, tuple[str, ...]]) -> str:
    sections = [
        f"## Task {task}: Write {task}.txt\n\n"
        f"**Depends on:** {', '.join(deps) or 'none'}\n\n"
        f"**Acceptance Criteria:**\n- [ ] {task}.txt is there\n"
        for task, deps in tasks.items()
    ]
    return "# Milestone: Files\n\n" + "\n".join(sections)


def files(
    tasks: dict[str, tuple[str, ...]],
    *,
    checks: str = "test ! -e broken",
    state_file: bool = False,
) -> dict[str, str]:
    wanted = "[state_files]\nmilestone = true\n" if state_file else ""
    return {
        "README.md": "hello\n",
        "plan.md": plan_text(tasks),
        "windlass.toml": f'checks = ["{checks}"]\n{wanted}',
    }


def book(tasks: dict[str, tuple[str, ...]], *, pause: float = 0.0, **special: Script) -> Book:
    """Each Player writes one file; a keyword replaces the script of the task with that id."""
    scripts = {
        f"Task: {task}\n": playing(
            write(f"{task}.txt", f"by {task}\n"), summary=f"Wrote {task}.txt.", pause=pause
        )
        for task in tasks
    }
    own = {f"Task: {task}\n": script for task, script in special.items()}
    # Each Coach has its own key too, so that the model's log shows whose review it was.
    reviews = {f"Role: Coach|Task: {task}\n": reviewing() for task in tasks}
    players = {f"Role: Player|{key}": script for key, script in {**scripts, **own}.items()}
    return Book(scripts={**reviews, **players})
