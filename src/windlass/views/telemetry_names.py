"""All names in telemetry: spans, attributes, instruments. They are here and nowhere else.

The names of spans, milestones and tasks are those that people have dashboards for. The `gen_ai`
names follow OpenTelemetry's conventions, which still change.
"""

from windlass.core import other_tools
from windlass.ports import Instrument

SERVICE = "windlass"
"""The service, unless OTEL_SERVICE_NAME says otherwise."""

MILESTONE = "orchestrator.milestone"
TASK = "orchestrator.task"
TURN = "orchestrator.turn"
PLAYER = "invoke_agent Player"
COACH = "invoke_agent Coach"

MILESTONE_ID = "milestone.id"
MILESTONE_TOTAL_TASKS = "milestone.total_tasks"
MILESTONE_RESUME = "milestone.resume"
MILESTONE_STATUS = "milestone.status"
MILESTONE_TOTAL_COST = "milestone.total_cost_usd"
MILESTONE_TOTAL_TOKENS = "milestone.total_tokens"
MILESTONE_COMPLETED = "milestone.tasks_completed"
MILESTONE_STALE = "milestone.tasks_stale"
RUN_ID = "windlass.run.id"
ESTIMATED_COST = "windlass.cost.estimated_usd"
"""How much of a span's cost is an estimate."""
TASK_ID = "task.id"
TASK_TITLE = "task.title"
TASK_STATUS = "task.status"
TURN_NUMBER = "turn.number"
TURN_OUTCOME = "turn.outcome"
TOKENS, COST = other_tools.TOKENS, other_tools.COST
ERROR_TYPE = "error.type"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  no password
MESSAGES = "gen_ai.output.messages"

INVOKE_AGENT = "invoke_agent"
CHAT = "chat"

L_MILESTONE, L_STATUS, L_ROLE, L_MODEL, L_TYPE = "milestone", "status", "role", "model", "type"
"""The labels of instruments."""

TASKS_TOTAL = Instrument(
    name="orchestrator_tasks_total",
    kind="counter",
    unit="1",
    help="Tasks that ended or need a person, by status",
)
TOKENS_TOTAL = Instrument(
    name="orchestrator_tokens_total", kind="counter", unit="1", help="Tokens read and written"
)
COST_TOTAL = Instrument(
    name="orchestrator_cost_usd_total",
    kind="counter",
    unit="1",
    help="US dollars, spent on answers or estimated for answers that were not seen whole",
)
RESERVED = Instrument(
    name="orchestrator_reserved_usd",
    kind="gauge",
    unit="1",
    help="Expected cost of the requests in flight, in US dollars",
)
RESERVED_MOST = Instrument(
    name="orchestrator_reserved_most_usd",
    kind="gauge",
    unit="1",
    help="Highest cost that the requests in flight can have, in US dollars",
)
TASK_DURATION = Instrument(
    name="orchestrator_task_duration_seconds",
    kind="histogram",
    unit="s",
    help="Working time of tasks until they were merged or abandoned",
    buckets=(30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800),
)
TOKEN_USAGE = Instrument(
    name="gen_ai.client.token.usage",
    kind="histogram",
    unit="{token}",
    help="Tokens of one request, or of one agent where its requests are not seen",
    buckets=tuple(4.0**power for power in range(14)),
)
INSTRUMENTS = (
    TASKS_TOTAL,
    TOKENS_TOTAL,
    COST_TOTAL,
    RESERVED,
    RESERVED_MOST,
    TASK_DURATION,
    TOKEN_USAGE,
)
