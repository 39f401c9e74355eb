"""What to do by hand where no program of ours opens a pull request: addresses, by the host's kind.

Law: nothing is guessed of a host that is not known; then people are told what to ask for.
"""

from urllib.parse import quote, urlencode

from msgspec import Struct

GITHUB = "github.com"


class Wish(Struct, frozen=True, kw_only=True):
    """A pull request that is to be opened."""

    host: str
    path: str
    """Where the base is: such as owner/name."""
    base: str
    head: str


def is_github(host: str) -> bool:
    """Whether a host is GitHub's own; another's GitHub may have any name."""
    return host == GITHUB or host.endswith(".ghe.com")


def address(wish: Wish) -> str:
    """The page that opens it, where the host's kind is known; else nothing."""
    root, host = f"https://{wish.host}/{quote(wish.path)}", wish.host
    base, head = quote(wish.base, safe="/"), quote(wish.head, safe="/:")
    if is_github(host):
        return f"{root}/compare/{base}...{head}?expand=1"
    if "gitlab" in host:
        named = {"source_branch": wish.head, "target_branch": wish.base}
        asked = urlencode({f"merge_request[{key}]": value for key, value in named.items()})
        return f"{root}/-/merge_requests/new?{asked}"
    if "bitbucket" in host:
        return f"{root}/pull-requests/new?{urlencode({'source': wish.head, 'dest': wish.base})}"
    if any(kind in host for kind in ("codeberg", "gitea", "forgejo")):
        return f"{root}/compare/{base}...{head}"
    return ""
