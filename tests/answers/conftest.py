from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.answers.suite import load_collection

if TYPE_CHECKING:
    from tests.answers.collection import Examiner


@pytest.fixture(scope="session")
def examiner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examiner]:
    """Examiner with the default preset over the whole collection, without a language model."""
    # Imported here because the unit tests in this folder do not need it.
    from tests.answers.collection import Examiner, build_index, settings_for

    index = build_index(tmp_path_factory.mktemp("answers"), load_collection())
    examiner = Examiner(settings_for(index))
    yield examiner
    examiner.close()
