"""Every vendor of agents that Windlass supports, one line each; the default first."""

from importlib import import_module

from windlass.adapters.agents.vendor import Vendor

MODULES = {
    "claude": "windlass.adapters.agents.claude",
}
"""By name in `agent.name`, the module with the value `VENDOR`; imported on demand."""


def names() -> tuple[str, ...]:
    """The values of `agent.name`; the first is the default."""
    return tuple(MODULES)


def find(name: str) -> Vendor:
    """The vendor of that name, which must be one of `names`."""
    vendor: Vendor = import_module(MODULES[name]).VENDOR
    return vendor
