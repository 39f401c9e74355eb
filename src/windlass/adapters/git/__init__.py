"""Git: the only record of code."""
