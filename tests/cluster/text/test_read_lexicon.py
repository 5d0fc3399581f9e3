from __future__ import annotations

import bz2
import pickle
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.text.read_lexicon import read_lexicon, unpickled_lexicon

TABLE = {
    "acute abdomen": ["abdomen, acute"],
    "abdomen, acute": ["abdomen, acute"],
    "belly\tache": ["abdomen, acute"],
    "ziagen": ["abacavir"],
}


def packed(content: Any) -> bytes:
    return bz2.compress(pickle.dumps(content))


def test_pickled_table_is_converted_to_text() -> None:
    text = unpickled_lexicon(packed({"drug_variant_to_canonical": TABLE, "other": {}}), "x")
    assert text == "abacavir\tziagen\nabdomen, acute\tacute abdomen\n"
    # Strings that occur twice are memoised in a pickle; they and numbers are also read.
    shared = "gout, chronic"
    table = {"x_variant_to_canonical": {"podagra": [shared], "old gout": [shared]}, "n": [1, 2.5]}
    assert unpickled_lexicon(packed(table), "x") == "gout, chronic\tpodagra\told gout\n"


class Runs:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


def test_pickle_with_a_class_is_rejected_without_running_it(tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    table = {"drug_variant_to_canonical": {"a name": [Runs(trap)]}}
    with pytest.raises(InputError, match=r"more than plain containers: "):
        unpickled_lexicon(packed(table), "pypi:evil==1/table.pkl.bz2")
    assert not trap.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"no bz2",
        bz2.compress(b"no pickle"),
        packed([1, 2]),
        packed({"a_variant_to_canonical": {}, "b_variant_to_canonical": {}}),
        packed({"a_variant_to_canonical": {"name": 3}}),
    ],
)
def test_invalid_lexicons_are_rejected(content: bytes) -> None:
    with pytest.raises(InputError, match=r"table\.pkl\.bz2 is not a lexicon"):
        unpickled_lexicon(content, "table.pkl.bz2")


def test_read_lexicon_reports_the_line_number(tmp_path: Path) -> None:
    path = tmp_path / "names.tsv"
    path.write_text("gout\tpodagra\n\nasthma\tbronchial asthma\t\n", encoding="utf-8")
    assert list(read_lexicon(path)) == [["gout", "podagra"], ["asthma", "bronchial asthma"]]
    path.write_text("gout\tpodagra\nasthma; bronchial asthma\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"names\.tsv, line 2: a single name"):
        list(read_lexicon(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"names\.tsv: cannot be read as a lexicon"):
        list(read_lexicon(path))
