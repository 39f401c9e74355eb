"""What a run is told: every key, its meaning, its bounds. Recorded with the run's first event.

A key that is here is read somewhere; a key that is not here is refused by whoever reads the
configuration. Where values come from (file, environment, options) is no business of this module.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Level = Literal["bwrap", "checkout", "none"]
"""How strong the sandbox is: see docs/sandbox.md."""

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Commands = tuple[Annotated[str, Meta(min_length=1)], ...]


class AgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How agents are run."""

    name: Literal["claude"] = "claude"
    """Which agent plays."""
    idle_timeout: Seconds = 300
    """End an agent whose model request brings no bytes for this many seconds."""
    timeout: Seconds = 3600
    """End an agent after this many seconds, whatever it does."""
    max_steps: Annotated[int, Meta(ge=1, le=10_000)] = 200
    """End an agent after this many requests to its model."""


class WorkspaceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How checkouts are prepared."""

    kind: Literal["clone"] = "clone"
    """How a task's checkout is made."""
    setup: Commands = ()
    """Commands that prepare a checkout before anyone works or checks in it; network allowed."""
    inputs: tuple[str, ...] = ()
    """Files the setup depends on; what it made is reused while they stay the same."""
    keep: tuple[str, ...] = ()
    """Folders that never enter a commit unless the base tracks them."""
    max_file_mb: Annotated[float, Meta(gt=0, le=10_000)] = 50
    """Refuse a commit that adds or changes a file larger than this."""


class SandboxSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What agents and checks may reach."""

    level: Literal["auto", "bwrap", "checkout", "none"] = "auto"
    """How strong the sandbox is; auto takes the strongest at hand."""
    network: bool = False
    """Let checks use the network."""
    read: tuple[str, ...] = ()
    """Folders of your home that agents and checks may also read."""
    env: tuple[str, ...] = ()
    """Variables that checks and agents may also see."""


class E2ESettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done with the plan's end-to-end scenario."""

    run: bool = False
    """Try the plan's E2E scenario on the merged work, and have what fails mended."""


class PolicySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do where a person could decide."""

    red_base: Literal["ask", "go", "stop"] = "ask"
    """When the project's checks fail before anything was changed."""
    absent: Literal["return", "skip"] = "return"
    """When a check collects nothing: return the work, or do without that check."""
    checkpoint: Literal["ask", "pass"] = "ask"
    """Before a task of complexity 7 or more starts: ask a person, or let it."""
    on_failure: Literal["dialect", "stop", "block"] = "dialect"
    """When a task is abandoned: stop the run, or block its dependents only."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All a run is told, beside its plan."""

    checks: Commands = ()
    """Commands that prove the project as a whole."""
    check_timeout: Seconds = 600
    """End a check after this many seconds."""
    agents: Annotated[int, Meta(ge=1, le=64)] = 3
    """How many agents work at once."""
    test_slots: Annotated[int, Meta(ge=1, le=64)] = 3
    """How many tasks' checks run at once; those of the one merge come on top."""
    barrier: bool = False
    """Begin a stage only when the one before it is settled, also where the plan does not ask."""
    max_turns: Annotated[int, Meta(ge=1, le=100)] = 5
    """How many turns a task may take before it is abandoned."""
    model: str = "claude-sonnet-4-5"
    """The model that plays."""
    coach_model: str | None = None
    """The model that reviews; the one that plays unless set."""
    max_cost: Annotated[float, Meta(gt=0, le=100_000)] = 20.0
    """Stop the run when it has spent this many US dollars."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Stop the run when it has used this many tokens, read and written; no limit unless set."""
    base: Annotated[str, Meta(min_length=1)] | None = None
    """The branch or commit to work from; the checked-out one unless set."""
    agent: AgentSettings = AgentSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    sandbox: SandboxSettings = SandboxSettings()
    e2e: E2ESettings = E2ESettings()
    policy: PolicySettings = PolicySettings()
