"""The renderer of these tests beside the real one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s.overlays import APPLIED, K8S, rendered
from tests.k8s.render import render


def by_identity(objects: Any) -> dict[tuple[str, str], Any]:
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on this machine")
@pytest.mark.parametrize("name", APPLIED)
def test_an_overlay_is_rendered_as_kubectl_does(name: str) -> None:
    command = ["kubectl", "kustomize", str(K8S / "overlays" / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "replacements" in done.stderr:
        pytest.skip("this kubectl's kustomize is older than version 4.2")
    assert done.returncode == 0, done.stderr
    assert by_identity(rendered(name)) == by_identity(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize("name", APPLIED)
def test_no_two_objects_of_an_overlay_are_one(name: str) -> None:
    assert len(by_identity(rendered(name))) == len(rendered(name))


def test_what_the_renderer_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("namePrefix: a-\n", encoding="utf-8")
    with pytest.raises(ValueError, match="namePrefix"):
        render(tmp_path)
