"""Real documents of other projects, read from the folder WINDLASS_CORPUS and never copied here."""

import os
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("WINDLASS_CORPUS", "/nonexistent"))

needs_corpus = pytest.mark.skipif(
    "WINDLASS_CORPUS" not in os.environ,
    reason="WINDLASS_CORPUS does not name the folder of the real documents",
)
