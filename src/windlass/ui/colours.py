"""The colours of words and of rows, as a terminal is told them."""

BY_WORD = {
    "DONE": "32",
    "LANDED": "32",
    "START": "1",
    "RESUME": "1",
    "RETURNED": "33",
    "ANSWER": "36",
    "GO": "36",
    "CONFLICT": "33",
    "LIMIT": "33",
    "WAIT": "33",
    "WARNING": "33",
    "FAILED": "31",
    "ABANDONED": "31",
    "BLOCKED": "31",
    "NEEDS YOU": "35",
    "STOP": "33",
    "PAUSE": "33",
    "Summary": "1",
    "Next": "1",
}

BY_STYLE = {
    "title": "1",
    "you": "1;35",
    "work": "36",
    "back": "33",
    "wait": "33",
    "merge": "32",
    "dim": "2",
}


def coloured(text: str, code: str) -> str:
    """The text in that colour, and what follows in none."""
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text
