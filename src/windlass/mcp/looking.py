"""Read-only tools: the state of runs as plain data.

Law: nothing is written, and no file is opened because an argument names it. A plan must have been
run here and is named by its id or the path it was run with. All output passes the redactor.
"""

from typing import Any, cast

import msgspec

from windlass.app.costs import Costs, costs
from windlass.app.diff import diff_of
from windlass.app.log import Log, LogRequest, log
from windlass.app.recorded import recorded_plan, recorded_task
from windlass.app.status import needs_of, status_of
from windlass.app.wiring import Project
from windlass.core.state import Attempt
from windlass.core.state.checks import task_checks
from windlass.errors import JournalError
from windlass.views.bills import By
from windlass.views.outcome import is_finished
from windlass.views.progress import progress
from windlass.views.scrubbing import scrubbed

BY: tuple[By, ...] = ("plan", "task", "role", "model")
MOST_LINES = 500
MOST_CHARACTERS = 60_000
"""Of a diff; more would fill the context of the agent that asks."""

Reply = dict[str, Any]


class Looking:
    def __init__(self, project: Project) -> None:
        self.project = project

    def status(self, plan: str | None) -> Reply:
        """The state of the last run of a plan, or of every plan."""
        plans = self.project.journals.plans()
        if plan is not None:
            plans = [recorded_plan(self.project, plan)]
        return self._out({"runs": [self._stand(plan_id) for plan_id in plans]})

    def task(self, task: str) -> Reply:
        """Everything about one task: its text, and every start of a Player."""
        state, id_ = recorded_task(self.project, task)
        spec, now = state.specs[id_], state.tasks[id_]
        shown = msgspec.to_builtins(progress(state, 0).tasks[id_])
        return self._out(
            {
                "plan": state.plan.id,
                "id": id_,
                "title": spec.title,
                "text": spec.text,
                "acceptance_criteria": list(spec.acceptance_criteria),
                "depends_on": list(spec.depends_on),
                "checks": list(task_checks(state, id_)),
                **shown,
                "asks": now.question,
                "starts": [_start(attempt) for attempt in now.attempts],
            }
        )

    def log(self, plan: str | None, task: str | None, since: int, limit: int) -> Reply:
        """What happened after a position of the journal, oldest first."""
        if task is not None:
            state, id_ = recorded_task(self.project, task)
            plan_id, tasks = state.plan.id, (id_,)
        else:
            plan_id, tasks = recorded_plan(self.project, plan), ()
        most = max(1, min(limit, MOST_LINES))
        asked = log(self.project, LogRequest(plan=plan_id, tasks=tasks, after=since))
        lines = _lines(asked)
        more = len(lines) > most
        after = lines[most - 1]["seq"] if more else max(since, asked.last)
        return self._out({"plan": plan_id, "lines": lines[:most], "next": after, "more": more})

    def diff(self, task: str, *, stat: bool) -> Reply:
        """What a task changed, against the commit it started from."""
        state, id_ = recorded_task(self.project, task)
        found = diff_of(self.project, state, id_, stat=stat)
        clean = self.project.redactor.text(found.text.encode(errors="replace").decode())
        return {
            "plan": found.plan,
            "task": id_,
            "from": found.start,
            "to": found.end,
            "diff": clean[:MOST_CHARACTERS],
            "cut": len(clean) > MOST_CHARACTERS,
        }

    def costs(self, plan: str | None) -> Reply:
        """What agents have cost in all runs: by plan, task, role and model."""
        named = recorded_plan(self.project, plan) if plan is not None else None
        found = costs(self.project, named) if self.project.journals.plans() else Costs(())
        sums = {each: found.by(each) for each in BY}
        return self._out(msgspec.to_builtins({"total": found.total, **sums}))

    def news(self, plan_id: str, since: int) -> Reply | None:
        """The answer for a waiting program; None while the run is live and nothing happened."""
        stand = self._stand(plan_id)
        lines = _lines(log(self.project, LogRequest(plan=plan_id, after=since)))
        if not lines and not stand["needs"] and stand["live"]:
            return None
        return self._out({**stand, "changed": bool(lines), "lines": lines[-MOST_LINES:]})

    def quiet(self, plan_id: str) -> Reply:
        """The answer when the time is up and nothing happened."""
        return self._out({**self._stand(plan_id), "changed": False, "lines": []})

    def _stand(self, plan_id: str) -> Reply:
        found = status_of(self.project, plan_id)
        if found.state is None:
            raise JournalError(found.note)
        return {
            **msgspec.to_builtins(found.progress),
            "live": found.pid is not None,
            "finished": is_finished(found.state),
            "needs": msgspec.to_builtins(needs_of(found.state)),
            "next_commands": [step.command for step in found.steps],
        }

    def last(self, plan_id: str) -> int:
        entries = self.project.journals.entries(plan_id)
        return entries[-1].seq if entries else 0

    def _out(self, reply: Reply) -> Reply:
        return cast("Reply", scrubbed(reply, self.project.redactor.text, texts=True))


def _start(attempt: Attempt) -> Reply:
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


def _lines(found: Log) -> list[Reply]:
    return [
        {
            "seq": each.entry.seq,
            "at": each.entry.event.at.isoformat(),
            "word": each.line.word,
            "text": each.line.text,
            "details": list(each.line.details),
        }
        for each in found.lines
        if each.line is not None
    ]
