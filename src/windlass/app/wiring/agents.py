"""The agent's vendor that the settings name, and the credentials it needs."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec.structs import replace

from windlass.adapters.agents import vendors
from windlass.adapters.agents.vendor import Vendor
from windlass.adapters.user_network import UserNetwork
from windlass.core.settings import AgentSettings, Settings
from windlass.errors import BadInput, ConfigError

DEFAULT = AgentSettings()


def vendor_of(settings: AgentSettings = DEFAULT) -> Vendor:
    """The vendor that the settings name, or the default; raises for an unknown name."""
    name = settings.name or vendors.names()[0]
    if name not in vendors.names():
        hint = "correct [agent] name in windlass.toml"
        raise ConfigError(no_such_agent(name), about="agent.name", hint=hint)
    return vendors.find(name)


def no_such_agent(name: str) -> str:
    """The message for an unknown vendor."""
    return f"there is no agent {name!r}, only {', '.join(vendors.names())}"


def with_agent(settings: Settings) -> Settings:
    """The settings with the names of the agent and the model filled in, as a run records them."""
    vendor = vendor_of(settings.agent)
    agent = replace(settings.agent, name=vendor.name)
    return replace(settings, agent=agent, model=settings.model or vendor.model)


def refuse_without_credentials(
    settings: AgentSettings,
    environment: Mapping[str, str],
    instead: str = "try `windlass demo`, which needs none",
) -> tuple[str, ...]:
    """The variables with the agent's credentials; raises if it could not reach its model."""
    vendor = vendor_of(settings)
    found = vendor.credentials(environment)
    if not found.keys() - {vendor.address}:
        raise BadInput(
            "no key for the agent in the environment",
            about=vendor.keys[0],
            hint=f"set {vendor.keys[0]}, or {instead}",
        )
    # The value may hold a login, so it is not shown.
    if vendor.address in found and not _is_web_address(found[vendor.address]):
        raise ConfigError(
            f"{vendor.address} is not a URL",
            about=vendor.address,
            hint="set it to one that begins with http:// or https://, or unset it",
        )
    if url := found.get(vendor.address) or vendor.url:
        UserNetwork(environment).refuse_unusable(url)
    return tuple(found)


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number, or the IPv6 address is incomplete
        return False
