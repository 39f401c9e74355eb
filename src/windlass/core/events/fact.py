"""The base of all facts.

Facts ending in `Started` or `Requested` are intents: they are durable before their effect begins,
so a crash at any point leaves a record of what was under way.
"""

from datetime import datetime

from msgspec import Struct


class Fact(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """The base of all facts."""

    at: datetime
