"""Consent to what cannot be undone or is public.

Law: the answer is no unless the request says that it is confirmed, or a person says yes. Without a
person it is an error that names the command. A command whose own words ask for the act (`pr`,
`--restart`, `--force`) is enough where no person can be asked.
"""

from windlass.app.person import Person
from windlass.errors import Declined, Unanswered
from windlass.views.consequences import Consequences


def agree(
    act: Consequences, *, confirmed: bool, person: Person | None, by_name: bool = False
) -> None:
    """Return if the act is agreed to; else raise, and nothing has changed.

    `by_name`: the command names the act itself.
    """
    if confirmed or (person is None and by_name):
        return
    if person is None:
        raise Unanswered(
            f"{act.what} There is no terminal to confirm at", hint=f"run `{act.command}`"
        )
    if not person.allow(act.text, act.question):
        raise Declined("not confirmed; nothing was changed")
