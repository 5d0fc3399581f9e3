"""The runtime environment of a submitted job: its code, packages and environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster.errors import InputError, cut
from cluster.settings.read_config import read_config, read_yaml

# Not uploaded: models and indexes. Ray itself excludes .git, .venv, and the patterns in .gitignore
# and .rayignore.
STAYS_HERE = ".citeray"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def job_runtime_env(
    file: Path | None, working_dir: str | None, variables: Sequence[str]
) -> dict[str, Any]:
    """Return Ray's runtime environment from `file` (YAML or JSON), completed by the options.

    `working_dir` is a folder, or the URL of an archive, and replaces the folder in the file. With
    None, the folder in the file is used, or else the current folder; with "", no folder is used.
    `variables` are names of environment variables, whose values are copied from this process and
    appear in no message. Raises InputError for unusable input.
    """
    found = read_yaml(read_config(file, f"--runtime-env {file}"), str(file)) if file else {}
    given = found.pop("env_vars", None) or {}
    if not (isinstance(given, dict) and all(isinstance(v, str) for v in given.values())):
        raise InputError(f"{file}: env_vars must map names to text; put numbers in quotes")
    if environment := given | {name: _value_of(name) for name in variables}:
        found["env_vars"] = environment
    of_file = found.pop("working_dir", ".")
    if folder := of_file if working_dir is None else working_dir:
        if "://" not in str(folder) and not Path(folder).is_dir():
            raise InputError(f"working directory {folder}: no such folder")
        found["working_dir"] = str(folder)
        found["excludes"] = [*(found.get("excludes") or ()), STAYS_HERE]
    return found


def _value_of(name: str) -> str:
    if not _NAME.fullmatch(name):
        known = cut(name.partition("=")[0])
        raise InputError(
            f"--env {known}: expected only the name of an environment variable; its value is "
            f"taken from this shell, so that no command line contains it: export {known}"
        )
    if (value := os.environ.get(name)) is None:
        raise InputError(f"--env {name}: this shell has no such variable; export {name} first")
    return value
