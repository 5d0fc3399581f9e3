"""Gives every pin of a lock the SHA-256 of its files: `python requirements/add_hashes.py LOCK...`.

The hashes are those that the package index publishes, for Python 3.11 on Linux, and of files that
pip would take from this disk. pip then refuses any other file. It needs `packaging` and `requests`,
which the lock for CPUs has.
"""

import hashlib
import os
import re
import sys
from pathlib import Path

import requests
from packaging.tags import Tag
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

JSON = {"Accept": "application/vnd.pypi.simple.v1+json"}
_PIN = re.compile(r"^([\w.-]+)==(\S+)( ;[^\\]*[^\\ ])?")


def simple_url() -> str:
    """The package index of pip's own."""
    # pip turns off setuptools' distutils for the whole process that imports it.
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url)


def fits(tag: Tag) -> bool:
    """Whether CPython 3.11 on Linux takes a wheel of this tag."""
    version = r"3(\d|10|11)?"
    interpreter = (
        tag.interpreter == "cp311"
        or re.fullmatch(f"py{version}", tag.interpreter)
        or (tag.abi == "abi3" and re.fullmatch(f"cp{version}", tag.interpreter))
    )
    return bool(interpreter) and (tag.platform == "any" or "linux" in tag.platform)


def is_file_of(filename: str, version: Version) -> bool:
    """Whether the file is the source or a fitting wheel of this version."""
    try:
        if filename.endswith(".whl"):
            _, its, _, tags = parse_wheel_filename(filename)
            if not any(map(fits, tags)):
                return False
        else:
            its = parse_sdist_filename(filename)[1]
    except (ValueError, InvalidVersion):
        return False
    return its == version


def hashes_of(name: str, version: Version, folders: list[Path]) -> list[str]:
    """SHA-256 of the files of this version, sorted. Raises SystemExit for none."""
    reply = requests.get(f"{simple_url()}/{name}/", headers=JSON, timeout=60)
    reply.raise_for_status()
    found = {
        file["hashes"]["sha256"]
        for file in reply.json()["files"]
        if is_file_of(file["filename"], version)
    }
    for folder in folders:
        for path in folder.glob("*"):
            if canonicalize_name(path.name.split("-")[0]) == name and is_file_of(
                path.name, version
            ):
                found.add(hashlib.sha256(path.read_bytes()).hexdigest())
    if not found:
        sys.exit(f"{name} {version}: the index has no file of it for Python 3.11 on Linux")
    return sorted(found)


def with_hashes(lock: str, folders: list[Path]) -> str:
    """The lock with the hashes of each pin on lines of their own; comments stay."""
    lines = []
    for line in lock.splitlines():
        pin = _PIN.match(line)
        if pin is None:
            if not line.lstrip().startswith("--hash="):
                lines.append(line)
            continue
        name, version = canonicalize_name(pin[1]), Version(pin[2])
        hashes = [f"--hash=sha256:{digest}" for digest in hashes_of(name, version, folders)]
        lines.append(" \\\n    ".join([pin[0], *hashes]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Rewrite the locks that the command line names."""
    folders = [Path(folder) for folder in os.environ.get("PIP_FIND_LINKS", "").split()]
    for lock in map(Path, sys.argv[1:]):
        lock.write_text(with_hashes(lock.read_text(encoding="utf-8"), folders), encoding="utf-8")
        print(lock)


if __name__ == "__main__":
    main()
