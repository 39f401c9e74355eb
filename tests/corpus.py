"""Real documents, which are not ours: read where WINDLASS_CORPUS points, never copied here."""

import os
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("WINDLASS_CORPUS", "/nonexistent"))

needs_corpus = pytest.mark.skipif(
    "WINDLASS_CORPUS" not in os.environ,
    reason="WINDLASS_CORPUS does not say where the real documents are",
)
