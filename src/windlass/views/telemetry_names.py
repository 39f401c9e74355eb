"""Every name that telemetry uses: spans, attributes, instruments. Here, and nowhere else.

The names of spans and of what belongs to a milestone or a task are those people have dashboards
for. The `gen_ai` ones follow OpenTelemetry's conventions, which still move.
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
"""What instruments are broken down by."""

TASKS_TOTAL = Instrument(
    name="orchestrator_tasks_total",
    kind="counter",
    unit="1",
    help="Tasks that came to an end, or to a person, by status",
)
TOKENS_TOTAL = Instrument(
    name="orchestrator_tokens_total", kind="counter", unit="1", help="Tokens read and written"
)
COST_TOTAL = Instrument(
    name="orchestrator_cost_usd_total", kind="counter", unit="1", help="US dollars spent"
)
TASK_DURATION = Instrument(
    name="orchestrator_task_duration_seconds",
    kind="histogram",
    unit="s",
    help="How long tasks were worked on until they were merged or abandoned",
    buckets=(30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800),
)
TOKEN_USAGE = Instrument(
    name="gen_ai.client.token.usage",
    kind="histogram",
    unit="{token}",
    help="Tokens of one request, or of one agent where its requests are not seen",
    buckets=tuple(4.0**power for power in range(14)),
)
INSTRUMENTS = (TASKS_TOTAL, TOKENS_TOTAL, COST_TOTAL, TASK_DURATION, TOKEN_USAGE)
