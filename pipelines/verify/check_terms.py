"""Check that a version's term counts are the sums of those of its segments."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import PurePath
from typing import Any

from cluster.errors import IndexFormatError
from cluster.index.copies import fresh_copy
from cluster.index.layout import TERMS, manifest_file, segment_directory, terms_file
from cluster.index.manifest import Artefact, Manifest
from cluster.index.terms.term_table import map_terms, merged_batches, negated
from cluster.storage.locations import Location
from pipelines.verify.check_artefact import check_file
from pipelines.verify.note_findings import RESTORE, Finding, Notes


def check_version_terms(index: Location, manifest: Manifest, *, quick: bool) -> list[Finding]:
    """Return findings for the files of term counts; `quick` does not check the sums."""
    files: dict[PurePath, Artefact] = {terms_file(e.version): e.counts for e in manifest.terms}
    checked = (check_file(index, file, entry, quick=quick) for file, entry in files.items())
    findings = [finding for found in checked for finding in found]
    return findings if findings or quick else _check_sums(index, manifest, files)


def _check_sums(
    index: Location, manifest: Manifest, files: Mapping[PurePath, Artefact]
) -> list[Finding]:
    segments = [
        segment_directory(number, segment.id) / TERMS
        for number, shard in enumerate(manifest.shards)
        for segment in shard.segments
    ]
    notes = Notes(str(manifest_file(manifest.version)), RESTORE)
    with ExitStack() as stack:

        def read(file: PurePath) -> Any:
            here = stack.enter_context(fresh_copy(index / file.parent, {file.name}))
            return map_terms(here / file.name)

        try:
            added = [read(file) for file in segments]
        except IndexFormatError:
            # The check of the segment reports this.
            return []
        told = [read(file) for file in files]
        wrong = sum(batch.num_rows for batch in merged_batches([*told, *map(negated, added)]))
    if wrong:
        message = f"{wrong:,} terms do not have the sums of the segments' counts"
        notes.note("terms", message)
    return notes.findings
