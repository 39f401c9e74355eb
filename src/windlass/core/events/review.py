"""The Coach's structured answer: its decision, and its evidence for each criterion.

Only this structure decides. Prose next to it is shown to people and never parsed; an answer that
does not match the schema is no answer.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct


class TestResults(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of the Coach's own test run; `passed` is null if it ran none."""

    __test__ = False  # pytest would collect it because of its name

    passed: bool | None
    coverage: float | None = None
    failures: tuple[str, ...] = ()


class CriterionEvidence(Struct, frozen=True, kw_only=True):
    """The Coach's evidence of whether one acceptance criterion is met."""

    criterion: Annotated[int, Meta(ge=1, description="The number of the acceptance criterion")]
    met: bool
    evidence: Annotated[str, Meta(description="What you ran or read that shows it, and where")]


class Sighting(Struct, frozen=True, kw_only=True):
    """The Coach's evidence about a file or check that it was asked about by name."""

    name: Annotated[str, Meta(description="The file or check, exactly as you were given it")]
    evidence: Annotated[str, Meta(description="What you read or ran there, and what it shows")]


class Issue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem that the Coach found."""

    severity: Literal["must_fix", "should_fix", "nice_to_have"]
    category: str
    description: str
    file: str | None = None
    suggestion: str | None = None


class Review(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The Coach's whole answer."""

    decision: Literal["approve", "feedback"]
    summary: str
    test_results: TestResults
    evidence: tuple[CriterionEvidence, ...]
    issues: tuple[Issue, ...] = ()
    feedback: str | None = None
    seen: Annotated[
        tuple[Sighting, ...],
        Meta(description="One entry for each file or check that you were asked about by name"),
    ] = ()
    question: Annotated[
        str | None, Meta(description="Only what a person must decide before anyone can go on")
    ] = None


class PlayerAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The Player's closing answer. The summary is a claim, not evidence."""

    summary: Annotated[str, Meta(description="What was implemented, files, decisions, issues")]
    question: Annotated[
        str | None, Meta(description="Only what a person must decide before you can go on")
    ] = None


def schema(answer: type[Struct]) -> dict[str, Any]:
    """The JSON schema of an answer without references, which some agents do not resolve."""
    whole = msgspec.json.schema(answer)
    parts = whole.pop("$defs", {})
    return _inlined(whole, parts)


def _inlined(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return _inlined(parts[name], parts)
        return {key: _inlined(value, parts) for key, value in node.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, list):
        return [_inlined(item, parts) for item in node]  # pyright: ignore[reportUnknownVariableType]
    return node
