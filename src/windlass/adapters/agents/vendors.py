"""Every vendor of agents that Windlass knows: a line for each, the default first."""

from importlib import import_module

from windlass.adapters.agents.vendor import Vendor

MODULES = {
    "claude": "windlass.adapters.agents.claude",
}
"""By its name in `agent.name`, the module that has the value `VENDOR`; imported when asked for."""


def names() -> tuple[str, ...]:
    """What `agent.name` may be; the first is the default."""
    return tuple(MODULES)


def find(name: str) -> Vendor:
    """The vendor of that name, which must be one of `names`."""
    vendor: Vendor = import_module(MODULES[name]).VENDOR
    return vendor
