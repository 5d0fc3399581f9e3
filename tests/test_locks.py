"""The locks that the set-up installs: every package pinned, and its files known by their hashes."""

import re
from pathlib import Path

import pytest

LOCKS = sorted((Path(__file__).resolve().parents[1] / "requirements").glob("*.txt"))
PIN = re.compile(r"[\w.-]+==\S+(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_package_is_pinned_with_the_hashes_of_its_files(lock: Path) -> None:
    lines = lock.read_text(encoding="utf-8").splitlines()
    pins = "\n".join(line for line in lines if not line.startswith("#"))
    assert PIN.sub("", pins).strip() == ""
