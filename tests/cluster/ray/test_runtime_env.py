"""The runtime environment of a job, from a file and from the options of `citeray job submit`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.ray.runtime_env import job_runtime_env

pytestmark = pytest.mark.unit


def test_runtime_env_file_is_completed_by_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "env.yaml"
    file.write_text(f"{{pip: [a], working_dir: {tmp_path}, excludes: [x], env_vars: {{A: file}}}}")
    monkeypatch.setenv("A", "shell")
    found = job_runtime_env(file, None, ["A"])
    assert found == {
        "pip": ["a"],
        "working_dir": str(tmp_path),
        "excludes": ["x", ".citeray"],
        "env_vars": {"A": "shell"},
    }
    archive = job_runtime_env(file, "s3://bucket/code.zip", [])
    assert archive["working_dir"] == "s3://bucket/code.zip"
    assert "working_dir" not in job_runtime_env(file, "", [])
    assert job_runtime_env(None, None, []) == {"working_dir": ".", "excludes": [".citeray"]}


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("env_vars: {A: 1}", "B", "env_vars must map names to text"),
        ("[]", "B", "expected a mapping"),
        ("", "B=secret", "--env B: expected only the name"),
        ("", "B", "--env B: this shell has no such variable"),
    ],
)
def test_unusable_runtime_env_is_refused_without_showing_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str, message: str
) -> None:
    monkeypatch.delenv("B", raising=False)
    file = tmp_path / "env.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        job_runtime_env(file, None, [name])
    assert "secret" not in str(refused.value)
