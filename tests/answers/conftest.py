from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.answers.collection import Examiner, build_index, settings_for
from tests.answers.suite import load_collection


@pytest.fixture(scope="session")
def examiner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examiner]:
    """The default preset over the whole collection, without a language model."""
    index = build_index(tmp_path_factory.mktemp("answers"), load_collection())
    examiner = Examiner(settings_for(index))
    yield examiner
    examiner.close()
