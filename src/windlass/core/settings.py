"""The settings of a run: every key, its meaning, its bounds. Recorded with the run's first event.

Every key here is used, and the reader of the configuration refuses any other key. This module does
not know where values come from (file, environment, options). A value that is marked as `SECRET` is
neither recorded nor shown: `masked` replaces it.
"""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from msgspec import Meta, Struct, structs

SECRET = Meta(extra={"secret": True})
"""Marks a secret value: it is read from its source whenever it is needed."""

MASK = "[secret]"
"""Replaces such a value, to show that there was one."""

Level = Literal["bwrap", "seatbelt", "checkout", "none"]
"""How strong the sandbox is: see docs/sandbox.md."""

WALLED: frozenset[Level] = frozenset(("bwrap", "seatbelt"))
"""Levels at which the kernel confines processes; at the others they are only watched, or not."""

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Commands = tuple[Annotated[str, Meta(min_length=1)], ...]


class AgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How agents are run."""

    name: str | None = None
    """Which agent to run."""
    idle_timeout: Seconds = 300
    """End an agent whose model request receives nothing for this many seconds."""
    timeout: Seconds = 3600
    """End an agent after this many seconds."""
    max_steps: Annotated[int, Meta(ge=1, le=10_000)] = 200
    """End an agent after this many requests to its model."""


class WorkspaceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How checkouts are prepared."""

    kind: Literal["clone", "worktree"] = "clone"
    """What a task's checkout is: a separate clone, or a linked worktree of your repository."""
    setup: Commands = ()
    """Commands that prepare a checkout before an agent or a check uses it; network allowed."""
    inputs: tuple[str, ...] = ()
    """Files the setup depends on; its result is reused while they stay the same."""
    keep: tuple[str, ...] = ()
    """Folders never committed unless tracked; reused as checks of merged work left them."""
    max_file_mb: Annotated[float, Meta(gt=0, le=10_000)] = 50
    """Refuse a commit that adds or changes a file larger than this."""


class GitSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The commits that Windlass writes."""

    sign: bool | Literal["land", "all"] | None = None
    """Sign commits with your own key: all (the same as true), or only those of a landing."""
    co_author: bool = True
    """Name the agent in a Co-Authored-By trailer of every commit with its work."""

    @property
    def signs_all(self) -> bool:
        """Whether every commit is signed, as your own git does with commit.gpgSign."""
        return self.sign is True or self.sign == "all"

    @property
    def signs_landings(self) -> bool:
        """Whether the commits are signed that a landing or a squashed pull request writes."""
        return bool(self.sign)


class SandboxSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What agents and checks may reach."""

    level: Literal["auto", "bwrap", "seatbelt", "checkout", "none"] = "auto"
    """How strong the sandbox is; auto takes the strongest available."""
    network: bool | Literal["open"] = False
    """Let checks reach `hosts` too; "open": agents, setup and checks share the host's network."""
    hosts: tuple[str, ...] = ()
    """Hosts that agents may reach: "name", "*.name", or "host:port" for a service of yours."""
    memory_mb: Annotated[int, Meta(ge=64, le=16_000_000)] | None = None
    """End an agent or check that uses more memory than this; 3/4 of the machine's unless set."""
    processes: Annotated[int, Meta(ge=16, le=1_000_000)] = 4096
    """End an agent or check that has more processes than this."""
    disk_mb: Annotated[int, Meta(ge=1, le=16_000_000)] | None = None
    """End an agent or check that writes more than this to its workspace; half the free disk."""
    read: tuple[str, ...] = ()
    """Folders of your home that agents and checks may also read."""
    nested: bool = False
    """Let agents, checks and setup start their own sandboxes; this weakens Windlass's."""
    env: tuple[str, ...] = ()
    """Variables that checks and agents may also see."""


class E2ESettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plan's end-to-end scenario."""

    run: bool = False
    """Try the plan's E2E scenario on the merged work, and have an agent fix what fails."""


class PolicySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do where a person could decide."""

    red_base: Literal["ask", "go", "stop"] = "ask"
    """When the project's checks fail on the base."""
    absent: Literal["return", "skip"] = "return"
    """When a check collects no tests: return the work, or skip that check."""
    checkpoint: Literal["ask", "pass"] = "ask"
    """Before a task of complexity 7 or more starts: ask a person, or start it."""
    on_failure: Literal["dialect", "stop", "block"] = "dialect"
    """When a task is abandoned: stop the run, or block its dependents only."""
    stage: Literal["ask", "go", "retry", "stop"] = "ask"
    """When a stage does not verify: ask, continue, redo the stage, or stop the run."""
    flaky: Literal["name", "ask"] = "name"
    """When a check passes and fails on one tree: use two equal results in a row, or ask."""


class TelemetrySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What monitoring programs receive while a run is live."""

    otlp: Literal["auto", "off"] = "auto"
    """Send traces and metrics where the OTEL_* variables say, or never."""
    prometheus: Annotated[str, Meta(min_length=1)] | None = None
    """Serve metrics at this address, such as "127.0.0.1:9464"; a port alone is on loopback."""
    hosts: tuple[str, ...] = ()
    """Host names that Prometheus may use for that address, besides localhost and IP addresses."""
    contents: bool = False
    """Also send what agents say; without it only what they do, for how long and at what cost."""


class NotifySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notices to people when a run is done or cannot continue."""

    desktop: Literal["off", "auto", "on"] = "off"
    """Desktop notices: never, if there is a desktop, or always (warns if there is none)."""
    sound: bool = False
    """Play a sound with each notice, on macOS."""
    webhook: Annotated[Annotated[str, Meta(min_length=1)] | None, SECRET] = None
    """A URL that receives each notice as JSON, or the variable with it: it is a secret."""
    command: Annotated[Commands, SECRET] = ()
    """A program to run for each notice, with {title} and {text}; not from a file."""
    about: tuple[Literal["done", "human", "limit", "failed"], ...] = (
        "done",
        "human",
        "limit",
        "failed",
    )
    """When to send a notice: at the end, if a person is needed, at a limit, at a failure."""


class StateFileSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """State files for other tools, beside those that a plan's format always has."""

    milestone: bool = False
    """Write state/<plan>_state.json for a milestone also where there is none yet."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a run."""

    checks: Commands = ()
    """Commands that prove the project as a whole."""
    check_timeout: Seconds = 600
    """End a check after this many seconds."""
    agents: Annotated[int, Meta(ge=1, le=64)] = 3
    """How many agents work at once."""
    test_slots: Annotated[int, Meta(ge=1, le=64)] = 3
    """How many commits are checked at once, including that of the merge."""
    barrier: bool = False
    """Begin a stage only when the one before it is done, even if the plan does not require it."""
    batch: Annotated[int, Meta(ge=1, le=64)] = 8
    """How many waiting tasks are merged and checked as one batch; 1: each alone."""
    land: bool = False
    """Move the base branch to the tip when the run has completed."""
    max_turns: Annotated[int, Meta(ge=1, le=100)] = 5
    """How many turns a task may take before it is abandoned."""
    model: str | None = None
    """The Player's model; the agent's own default unless set."""
    coach_model: str | None = None
    """The Coach's model; the Player's unless set."""
    max_cost: Annotated[float, Meta(gt=0, le=100_000)] = 20.0
    """Stop the run when it has spent this many US dollars."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Stop the run when it has used this many tokens, input and output; no limit unless set."""
    base: Annotated[str, Meta(min_length=1)] | None = None
    """The branch or commit to work from; the checked-out one unless set."""
    agent: AgentSettings = AgentSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    git: GitSettings = GitSettings()
    sandbox: SandboxSettings = SandboxSettings()
    e2e: E2ESettings = E2ESettings()
    policy: PolicySettings = PolicySettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    notify: NotifySettings = NotifySettings()
    state_files: StateFileSettings = StateFileSettings()


S = TypeVar("S", bound=Struct)


def leaves(kind: type[Struct], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key that can be set, dotted, with its type."""
    for name, hint in _hints(kind).items():
        if isinstance(hint, type) and issubclass(hint, Struct):
            yield from leaves(hint, f"{prefix}{name}.")
        else:
            yield prefix + name, hint


def is_secret(hint: Any) -> bool:
    """Whether a setting of this type is marked as secret."""
    return SECRET in getattr(hint, "__metadata__", ())


def mask(value: Any, shown: str = MASK) -> Any:
    """The mask for a secret value; a value that is not set stays as it is."""
    if isinstance(value, str):
        return shown
    return (shown,) if value else value


def masked(settings: S) -> S:
    """Settings without secret values; the same object if none is set."""
    changed: dict[str, Any] = {}
    for name, hint in _hints(type(settings)).items():
        value = getattr(settings, name)
        new = mask(value) if is_secret(hint) else value
        new = masked(new) if isinstance(new, Struct) else new
        if new != value:
            changed[name] = new
    return structs.replace(settings, **changed) if changed else settings


@cache
def _hints(kind: type[Struct]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
