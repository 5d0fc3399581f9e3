"""Describe records that are skipped because they cannot be read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cluster.pubmed.split_records import PMID_WITHIN, Block

# A file with more damaged records is refused.
MAX_DAMAGED = 100
# Reasons for skipping a record that cannot be read; NO_RECORD is for bytes between two records.
DAMAGED, TOO_LARGE, NO_RECORD = SKIP_REASONS = ("damaged", "too-large", "damaged-between-records")

_OWN_PMID = re.compile(
    rb"<(?:MedlineCitation|BookDocument)(?:[ \t\r\n][^<>]{0,1000})?>[ \t\r\n]{0,100}"
    rb"<PMID(?:[ \t\r\n][^<>]{0,100})?>[ \t\r\n]{0,20}([1-9][0-9]{0,8})[ \t\r\n]{0,20}<"
)


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """Why bytes of a file were not read; `detail` names the PMID if it can be found."""

    reason: str
    detail: str


def skip_block(block: Block, fault: str, *, is_too_large: bool = False) -> SkippedRecord:
    """Describe a record that cannot be read, or bytes between two records."""
    pmid = _OWN_PMID.search(block.data[:PMID_WITHIN])
    name = f"PMID {int(pmid[1])}" if pmid else "PMID unknown"
    reason = TOO_LARGE if is_too_large else DAMAGED
    if not block.has_record:
        name, reason = "between two records", NO_RECORD
    where = f"bytes {block.offset} to {block.end} of the decompressed file"
    return SkippedRecord(reason, f"{name}, {where}: {fault}")
