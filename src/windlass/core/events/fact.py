"""What every fact has in common.

Facts ending in `Started` or `Requested` are intents: they are durable before the effect they
announce begins, so that a crash at any point leaves a trace of what was being done.
"""

from datetime import datetime

from msgspec import Struct


class Fact(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """What every fact has."""

    at: datetime
