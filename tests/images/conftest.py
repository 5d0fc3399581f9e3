from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.command import BIN
from tests.images.containerfile import ROOT


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of the demo without a language model, owned by the user of the images."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run(
        [str(BIN / "citeray"), "models", "pull", "--set", "llm.kind=none"],
        env={**os.environ, "CITERAY_MODELS": str(folder)},
        cwd=ROOT,
        check=True,
    )
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 10001, 10001)
    return folder
