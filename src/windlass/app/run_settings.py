"""The settings that a caller may give to one run; all others come from files and variables."""

from typing import Literal

from msgspec import Struct

from windlass.core.settings import Level


class RunSettings(Struct, frozen=True, kw_only=True):
    """None leaves a setting to windlass.toml, the environment, or the run that continues."""

    agents: int | None = None
    barrier: bool | None = None
    max_turns: int | None = None
    model: str | None = None
    coach_model: str | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    land: bool | None = None
    sandbox: Level | Literal["auto"] | None = None
    e2e: bool | None = None
    red_base: Literal["ask", "go", "stop"] | None = None
    notify: bool | None = None
    """Whether to show notices on the desktop; False sends no notices of any kind."""
    metrics_port: int | None = None

    def by_key(self) -> dict[str, object]:
        """The same by the dotted keys of windlass.toml."""
        desktop = None if self.notify is None else "auto" if self.notify else "off"
        port = self.metrics_port
        return {
            "agents": self.agents,
            "barrier": self.barrier,
            "max_turns": self.max_turns,
            "model": self.model,
            "coach_model": self.coach_model,
            "max_cost": self.max_cost,
            "max_tokens": self.max_tokens,
            "land": self.land,
            "sandbox.level": self.sandbox,
            "e2e.run": self.e2e,
            "policy.red_base": self.red_base,
            "notify.desktop": desktop,
            "telemetry.prometheus": None if port is None else f"127.0.0.1:{port}",
        }
