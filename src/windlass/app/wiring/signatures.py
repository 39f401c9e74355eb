"""Whether commits are signed here, and whether the user's key works."""

from windlass.adapters.git import inspect
from windlass.adapters.git.signing import Signer
from windlass.app.wiring.configuration import configure
from windlass.app.wiring.project import Project
from windlass.core.settings import GitSettings, Settings


def signer_of(project: Project) -> Signer:
    return Signer(project.user_git, inspect.identity(project.user_git))


def signature_of(project: Project) -> str:
    """The key that signs here; raises RepositoryError if a signature fails."""
    return signer_of(project).try_out(project.origin.object_format)


def refuse_unsigned(project: Project, *, sign: bool) -> None:
    """Raise if commits are to be signed and cannot be; before anything is done."""
    if sign:
        signature_of(project)


def unsigned_warning(project: Project, settings: Settings) -> str | None:
    """The warning for a user whose own git signs, and who has not said whether Windlass does."""
    if settings.git.sign is not None or not inspect.signs_by_default(project.user_git):
        return None
    return "commit.gpgSign is set, but these commits are not signed; [git] sign = true signs them"


def signs_in_run(settings: Settings) -> bool:
    """Whether a run itself will sign; with "land" that is later, when a person lands it."""
    return settings.git.signs_all or (settings.land and settings.git.signs_landings)


def git_settings(project: Project) -> GitSettings:
    """What counts for the commits of this process: the settings as they are now."""
    now = configure(project.root, project.environment, {}, directory=project.directory)
    return now.settings.git
