from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.pipelines.verify.built_index import PMIDS, build_from, record, write_source


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    texts = [record(pmid, f"Protein {pmid} binds gene {pmid % 7}.") for pmid in PMIDS]
    build_from(folder / "index", [write_source(folder / "n1.xml.gz", *texts)])
    return folder / "index"


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "index")
    return tmp_path / "index"
