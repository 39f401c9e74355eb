"""What was said of trees and is worth asking again, once a person has looked."""

from collections.abc import Iterable, Mapping

from windlass.core.events import model as e

Evidence = Mapping[str, Mapping[str, e.CheckResult]]


def forgiven(evidence: Evidence, trees: Iterable[str | None]) -> Evidence:
    """The evidence without what did not pass of these trees: somebody may have mended the cause."""
    kept = dict(evidence)
    for tree in {tree or "" for tree in trees} & evidence.keys():
        kept[tree] = {c: r for c, r in evidence[tree].items() if _is_steady_pass(r)}
    return kept


def _is_steady_pass(result: e.CheckResult) -> bool:
    return result.outcome is e.Outcome.PASS and not result.wavers
