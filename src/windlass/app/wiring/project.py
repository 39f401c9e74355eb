"""A project: the repository around a folder.

`journals` are the records of runs, `git` is the user's repository, `files` their checkout, `walls`
the sandbox. Callers use the parts directly; `Project` forwards nothing to them.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from windlass.adapters.disk import Trouble, trouble
from windlass.adapters.files import make_folder, write_durably
from windlass.adapters.git import inspect
from windlass.adapters.git.inspect import Base
from windlass.adapters.git.layout import Folders, Refs, Workspace, is_ready, workspace_around
from windlass.adapters.git.paths import kept_folders
from windlass.adapters.git.store import Origin
from windlass.app.wiring.checkout_files import CheckoutFiles
from windlass.app.wiring.journals import Journals
from windlass.app.wiring.redaction import redactor_for
from windlass.app.wiring.user_repository import UserRepository
from windlass.app.wiring.walls import Walls
from windlass.core.settings import WALLED, Settings

__all__ = ["Base", "Project"]


class Project:
    """The repository around a folder, and Windlass's files in it."""

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        notice: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Find the repository; `notice` gets messages such as that a state file was edited."""
        self.here: Workspace | None = workspace_around(directory)
        """The task's workspace that the folder is in, if any; commands then mean its run."""
        place = directory if self.here is None else self.here.root
        self.directory = directory if self.here is None else place / self.here.below
        """The folder for paths that a person types; never a workspace, which is a copy."""
        self.environment = environment
        self.notice = notice
        self.user_git = inspect.UserGit(place, environment)
        self.origin: Origin = inspect.locate(self.user_git)
        self.root = self.origin.root
        self.redactor = redactor_for(self.root, environment)
        self.home = self.root / ".windlass"
        # The same plan may run in two clones of a repository; each ends only its own leftovers.
        self.mark = hashlib.sha256(bytes(self.root)).hexdigest()[:12]
        self.journals = Journals(
            self.home, self.user_git, self.origin, self.redactor, self.make_home, notice
        )
        self.git = UserRepository(self.user_git, self.origin, self.journals.own_files)
        self.files = CheckoutFiles(self.root, self.origin.git_dir, self.user_git)
        self.walls = Walls(self.origin, self.home, environment)

    def path_of(self, typed: str) -> Path:
        """The file that a person means by this path.

        Typed in a workspace, it is the file of their own checkout, whose folders may be missing.
        """
        path = self.directory / typed
        return path if self.here is None else Path(os.path.normpath(path))

    def folders(self, plan_id: str) -> Folders:
        return Folders(self.home, plan_id)

    def make_home(self) -> None:
        """Create Windlass's own folder; the user's git ignores it."""
        make_folder(self.home, inside=self.root)
        ignore = self.home / ".gitignore"
        if not os.path.lexists(ignore):
            write_durably(ignore, "*\n", inside=self.root)

    def is_ready(self, plan_id: str, run: str, task: str, n: int) -> bool:
        """Whether the workspace of a task's n-th start was made, even if it is deleted now."""
        return is_ready(self.folders(plan_id), run, task, n)

    def ready_workspace(self, plan_id: str, run: str, task: str, n: int) -> Path | None:
        """The workspace of a task's n-th start; None until it is ready to be used."""
        workspace = self.folders(plan_id).workspace(task)
        ready = self.is_ready(plan_id, run, task, n) and workspace.is_dir()
        return workspace if ready else None

    def refuse_unfit(self, settings: Settings, plan_id: str) -> None:
        """Raise if a run of the plan could not work here; changes nothing."""
        inspect.identity(self.user_git)
        inspect.refuse_clashing_branches(self.user_git, Refs(plan_id, ""))
        self.refuse_settings(settings)
        self.walls.refuse_impossible(settings)
        if settings.sandbox.level in WALLED:
            self.walls.sandbox(settings, "probe")

    def refuse_settings(self, settings: Settings) -> None:
        """Raise if no run could work here with these settings."""
        inspect.refuse_unlinkable(self.origin, settings.workspace)
        kept_folders(settings.workspace.keep)

    def trouble(self, error: Exception) -> Trouble:
        """What is wrong with the disk of the run, found by trying; else the error itself."""
        return trouble(error, (self.home, self.origin.objects[0]))
