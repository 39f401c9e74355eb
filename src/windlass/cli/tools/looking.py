"""Tools that only look, for programs: how runs stand, as plain data.

Law: nothing is written and no file is opened because an argument names it. A plan is one that was
run here, by its id or the path it was run with; a task is one of its tasks. All that goes out
passes the redactor.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from windlass.cli.wiring import Project
from windlass.errors import BadInput
from windlass.events.model import Entry, RunStarted
from windlass.state import Attempt, RunState, apply
from windlass.state.demands import task_checks
from windlass.state.transitions import HELPLESS
from windlass.views.bills import bills, totals, whole
from windlass.views.closing import asks
from windlass.views.lines import Line
from windlass.views.outcome import is_finished, task_statuses
from windlass.views.progress import progress
from windlass.views.scrubbing import scrubbed
from windlass.views.steps import next_steps
from windlass.views.story import line_of
from windlass.views.tree import unverified_stage
from windlass.views.words import one_line

MOST_LINES = 500
MOST_CHARACTERS = 60_000
"""Of a diff; more would fill the memory of whoever asks."""

Told = dict[str, Any]


class Looking:
    """One project, looked at."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def status(self, plan: str | None) -> Told:
        """How the last run of a plan stands, or of every plan."""
        plans = [self.plan_of(plan)] if plan is not None else self.project.plans()
        return self._out({"runs": [self._stand(plan_id) for plan_id in plans]})

    def task(self, task: str) -> Told:
        """All there is to know of one task: what it asks for, and every start of a Player."""
        state, id_ = self.task_of(task)
        spec, now = state.specs[id_], state.tasks[id_]
        told = msgspec.to_builtins(progress(state, 0).tasks[id_])
        return self._out(
            {
                "plan": state.plan.id,
                "id": id_,
                "title": spec.title,
                "text": spec.text,
                "acceptance_criteria": list(spec.acceptance_criteria),
                "depends_on": list(spec.depends_on),
                "checks": list(task_checks(state, id_)),
                **told,
                "asks": now.question,
                "starts": [_start(attempt) for attempt in now.attempts],
            }
        )

    def log(self, plan: str | None, task: str | None, since: int, limit: int) -> Told:
        """What happened after a position of the journal, the oldest first."""
        if task is not None:
            state, id_ = self.task_of(task)
            plan_id, wanted = state.plan.id, {id_}
        else:
            plan_id, wanted = self.plan_of(plan), None
        most = max(1, min(limit, MOST_LINES))
        found = [
            (entry, line)
            for entry, line in self._lines(plan_id)
            if entry.seq > since and (wanted is None or wanted & _tasks(entry))
        ]
        shown, last = found[:most], self.last(plan_id)
        after = shown[-1][0].seq if len(found) > most else max(since, last)
        lines = [_line(entry, line) for entry, line in shown]
        return self._out(
            {"plan": plan_id, "lines": lines, "next": after, "more": len(found) > most}
        )

    def diff(self, task: str, *, stat: bool) -> Told:
        """What a task changed, against the commit it started from."""
        state, id_ = self.task_of(task)
        found = state.tasks[id_]
        if found.head is None:
            raise BadInput(f"task {id_!r} has not been started")
        safe = ("--no-ext-diff", "--no-textconv", "--color=never")
        what = ("--stat",) if stat else ("--patch", "--stat")
        ends = (found.attempts[0].start, found.head)
        text = self.project.git("diff", *safe, *what, *ends, "--")
        clean = self.project.redactor.text(text.encode(errors="replace").decode())
        return {
            "plan": state.plan.id,
            "task": id_,
            "from": ends[0],
            "to": ends[1],
            "diff": clean[:MOST_CHARACTERS],
            "cut": len(clean) > MOST_CHARACTERS,
        }

    def costs(self, plan: str | None) -> Told:
        """What agents have used up, over all runs: by plan, task, role and model."""
        plans = [self.plan_of(plan)] if plan is not None else self.project.plans()
        found = [
            bill
            for plan_id in plans
            for bill in bills(plan_id, (entry.event for entry in self.project.entries(plan_id)))
        ]
        sums = {
            "plan": totals(found, "plan"),
            "task": totals(found, "task"),
            "role": totals(found, "role"),
            "model": totals(found, "model"),
        }
        return self._out(msgspec.to_builtins({"total": whole(found), **sums}))

    def news(self, plan_id: str, since: int) -> Told | None:
        """What a waiting program should hear: something happened, or nothing more will.

        None where there is nothing to say yet.
        """
        state = self._state(plan_id)
        lines = [(e, line) for e, line in self._lines(plan_id) if e.seq > since]
        needs = _needs(state)
        is_live = self.project.live_pid(plan_id) is not None
        if not lines and not needs and is_live:
            return None
        shown = [_line(entry, line) for entry, line in lines[-MOST_LINES:]]
        return self._out({**self._stand(plan_id), "changed": bool(lines), "lines": shown})

    def quiet(self, plan_id: str) -> Told:
        """What is said when the time is up and nothing happened."""
        return self._out({**self._stand(plan_id), "changed": False, "lines": []})

    def plan_of(self, typed: str | None) -> str:
        """The plan that is meant, of those that were run here; without a name, the only live one.

        Or the only one there is.
        """
        plans = self.project.plans()
        if typed is None:
            live = [each for each in plans if self.project.live_pid(each) is not None]
            for few in (live, plans):
                if len(few) == 1:
                    return few[0]
            raise BadInput(f"say which plan: {', '.join(plans) or 'none was run here yet'}")
        if typed in plans:
            return typed
        for plan_id in plans:
            state = self.project.last_run(plan_id)
            if state is not None and state.plan.path == typed:
                return plan_id
        there = ", ".join(plans) or "none yet"
        raise BadInput(f"no plan {one_line(typed, 80)!r} was run here; there is: {there}")

    def task_of(self, typed: str, *, stages: bool = False) -> tuple[RunState, str]:
        """A task, written TASK or PLAN:TASK, and its plan's last run; a stage where those count."""
        plans = self.project.plans()
        named = [p for p in plans if typed.startswith(f"{p}:")]
        pairs = [(p, typed[len(p) + 1 :]) for p in named] + [(p, typed) for p in plans]
        found: list[tuple[RunState, str]] = []
        for plan_id, name in pairs:
            state = self.project.last_run(plan_id)
            if state is None:
                continue
            if name in state.tasks or (stages and name in state.index.stages):
                found.append((state, name))
        if len(found) == 1:
            return found[0]
        shown = one_line(typed, 80)
        if found:
            ways = ", ".join(f"{state.plan.id}:{name}" for state, name in found)
            raise BadInput(f"several plans have a task {shown!r}; say which: {ways}")
        raise BadInput(f"no plan that was run here has a task {shown!r}")

    def _stand(self, plan_id: str) -> Told:
        state, pid = self._state(plan_id), self.project.live_pid(plan_id)
        ground = self.project.ground(state) if pid is None else None
        steps = [] if pid is not None else next_steps(state, plan=plan_id, ground=ground)
        return {
            **msgspec.to_builtins(progress(state, self.last(plan_id))),
            "live": pid is not None,
            "finished": is_finished(state),
            "needs": _needs(state),
            "next_commands": [step.command for step in steps],
        }

    def _state(self, plan_id: str) -> RunState:
        state = self.project.last_run(plan_id)
        if state is None:
            raise BadInput(f"plan {plan_id!r} was never run here")
        return state

    def last(self, plan_id: str) -> int:
        """The position of the newest fact."""
        entries = self.project.entries(plan_id)
        return entries[-1].seq if entries else 0

    def _lines(self, plan_id: str) -> Iterator[tuple[Entry, Line]]:
        """What is told of the last run, fact by fact."""
        entries = self.project.entries(plan_id)
        begins = max(x.seq for x in entries if isinstance(x.event, RunStarted)) if entries else 0
        state: RunState | None = None
        for entry in entries:
            state = apply(state, entry.event)
            line = line_of(entry.event, state) if entry.seq >= begins else None
            if line is not None:
                yield entry, line

    def _out(self, told: Told) -> Told:
        return cast("Told", scrubbed(told, self.project.redactor.text, texts=True))


def _start(attempt: Attempt) -> Told:
    reviews = (coaching.review for coaching in reversed(attempt.coachings))
    return {
        "n": attempt.n,
        "turn": attempt.turn,
        "by": attempt.by or "Player",
        "summary": attempt.summary,
        "commit": attempt.commit,
        "files": list(attempt.files),
        "failure": attempt.failure,
        "message": attempt.message,
        "checks": [
            {"command": r.command, "outcome": r.absence or r.outcome, "output": r.output}
            for r in attempt.results
        ],
        "review": msgspec.to_builtins(next((r for r in reviews if r is not None), None)),
        "returned_with": attempt.feedback,
    }


def _line(entry: Entry, line: Line) -> Told:
    at = entry.event.at.isoformat()
    details = list(line.details)
    return {"seq": entry.seq, "at": at, "word": line.word, "text": line.text, "details": details}


def _tasks(entry: Entry) -> set[str]:
    one: str | None = getattr(entry.event, "task", None)
    return {one} if one is not None else set(getattr(entry.event, "tasks", ()))


def _needs(state: RunState) -> list[Told]:
    """What waits for a person, in their way."""
    words = task_statuses(state)
    waiting: list[Told] = [
        {"task": task.id, "status": words[task.id], "asks": asks(task)}
        for task in state.tasks.values()
        if task.phase in HELPLESS
    ]
    stage = unverified_stage(state)
    return [*waiting, *([{"stage": stage, "asks": "it did not verify"}] if stage else [])]
