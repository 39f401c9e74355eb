"""The sandbox for the commands and agents of a project."""

import sys
from collections.abc import Mapping
from pathlib import Path

from windlass.adapters.files import make_folder
from windlass.adapters.git.store import Origin
from windlass.adapters.processes.limits import Limits
from windlass.adapters.sandbox import Sandbox
from windlass.adapters.sandbox.box import choose
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.network import WaysOut
from windlass.adapters.sandbox.plain import Plain
from windlass.adapters.sandbox.seatbelt import Seatbelt
from windlass.core.hosts import BadHost
from windlass.core.settings import Level, SandboxSettings, Settings
from windlass.errors import ConfigError, NoWalls


class Walls:
    """Makes the sandbox of a run, and tests which kind works here."""

    def __init__(self, origin: Origin, home: Path, environment: Mapping[str, str]) -> None:
        self._root = origin.root
        self._git_dir = origin.git_dir
        self._home = home
        self._environment = environment
        self._boxes: dict[SandboxSettings, Bubblewrap] = {}
        """Made once for the same settings: to test what works here takes a tenth of a second."""

    def sandbox(self, settings: Settings, marker: str) -> Sandbox:
        """The sandbox for a run; never a weaker one than the settings ask for."""

        def plain(level: Level) -> Plain:
            empty = self._home / "empty-home"
            make_folder(empty)
            return Plain(
                level,
                home=empty,
                environment=self._environment,
                pass_env=settings.sandbox.env,
                marker=marker,
                limits=_limits(settings),
            )

        made = choose(
            settings.sandbox.level,
            bubblewrap=self._box(settings),
            seatbelt=self._seatbelt(settings, marker),
            plain=plain,
        )
        if isinstance(made, Bubblewrap):
            return made.of_run(marker, self._ways_out(settings))
        return made

    def level(self, settings: Settings) -> Level:
        """The level that a run would have: `checkout` if no walls work and no level is set."""
        try:
            return self.sandbox(settings, "probe").level
        except NoWalls:
            return "checkout"

    def why_no_walls(self, settings: Settings) -> str | None:
        """Why the walls of this operating system do not work here, or None."""
        if sys.platform == "darwin":
            return self._seatbelt(settings, "probe").probe()
        return self._box(settings).probe()

    def refuse_impossible(self, settings: Settings) -> None:
        """Raise if no sandbox could be as the settings ask for, whatever works here."""
        self._box(settings)

    def _box(self, settings: Settings) -> Bubblewrap:
        asked = settings.sandbox
        if asked not in self._boxes:
            self._boxes[asked] = self._made(settings)
        return self._boxes[asked]

    def _made(self, settings: Settings) -> Bubblewrap:
        return Bubblewrap(
            home=Path(self._environment.get("HOME", "/nonexistent")),
            repository=self._root,
            masked=(self._git_dir,),
            path=self._environment.get("PATH", ""),
            environment=self._environment,
            marker="probe",
            read=tuple(Path(folder).expanduser() for folder in settings.sandbox.read),
            pass_env=settings.sandbox.env,
            limits=_limits(settings),
            nested=settings.sandbox.nested,
            ways_out=self._ways_out(settings),
            open_network=settings.sandbox.network == "open",
        )

    def _ways_out(self, settings: Settings) -> WaysOut:
        try:
            return WaysOut(settings.sandbox.hosts, self._environment)
        except BadHost as error:
            hint = "correct [sandbox] hosts in windlass.toml"
            raise ConfigError(str(error), where="[sandbox] hosts", hint=hint) from error

    def _seatbelt(self, settings: Settings, marker: str) -> Seatbelt:
        return Seatbelt(
            home=Path(self._environment.get("HOME", "/nonexistent")),
            repository=self._root,
            path=self._environment.get("PATH", ""),
            environment=self._environment,
            marker=marker,
            places=self._home / "boxes",
            read=tuple(Path(folder).expanduser() for folder in settings.sandbox.read),
            pass_env=settings.sandbox.env,
            limits=_limits(settings),
        )


def _limits(settings: Settings) -> Limits:
    asked = settings.sandbox
    disk = None if asked.disk_mb is None else asked.disk_mb * 1_000_000
    if asked.memory_mb is None:
        return Limits(processes=asked.processes, disk=disk)
    return Limits(memory=asked.memory_mb * 1_000_000, processes=asked.processes, disk=disk)
