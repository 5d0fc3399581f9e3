from __future__ import annotations

import pytest

from cluster.settings.settings import load_settings
from evaluation.find_citations import CitationLookup
from tests.evaluation.lint.lint_runs import ABSTRACT
from tests.small_index import citation, make_index


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> CitationLookup:
    index = tmp_path_factory.mktemp("lint") / "index"
    retracted = citation(9, "Withdrawn.", publication_types=("Retracted Publication",))
    make_index(
        index, [citation(7, ABSTRACT, "Of iron."), citation(12, "ATATAT."), retracted], shards=1
    )
    return CitationLookup(load_settings(None, [f"index.path={index}"]))
