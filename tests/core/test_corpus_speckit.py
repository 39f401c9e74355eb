"""No real document of another kind is taken for a spec-kit list (B10).

The documents are not ours, so they are read where WINDLASS_CORPUS points.
"""

import pytest

from corpus import CORPUS, needs_corpus
from windlass.formats import speckit
from windlass.formats.dialect import Source

pytestmark = needs_corpus


@pytest.mark.parametrize("folder", ["feature", "milestone", "not-a-plan", "spec", "taskfile"])
def test_others_are_not_recognised(folder: str):
    texts = {
        f"{folder}/{path.name}": path.read_bytes().decode() for path in (CORPUS / folder).iterdir()
    }
    assert texts
    for path, text in texts.items():
        assert not speckit.SPECKIT.recognises(Source(path=path, texts=texts)), path
        renamed = Source(path="tasks.md", texts={"tasks.md": text})
        assert not speckit.SPECKIT.recognises(renamed), path
    assert not speckit.SPECKIT.recognises(Source(path=folder, texts=texts))
