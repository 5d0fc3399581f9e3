"""Counts that the manifest's entries derive."""

from __future__ import annotations

from cluster.index.manifest import DeadEntry, SegmentEntry, ShardEntry


def test_units_and_terms_exclude_those_of_replaced_records() -> None:
    old = SegmentEntry(
        id="old", citations=4, passages=9, terms={"citations": 30, "passages": 33}, artefacts={}
    )
    dead = DeadEntry(citations=1, passages=3, terms={"citations": 12})
    new = SegmentEntry(
        id="new", citations=1, passages=2, terms={"citations": 5}, artefacts={}, dead=dead
    )
    shard = ShardEntry(segments=(old, new))
    assert (shard.units("citations"), shard.live_terms("citations")) == (4, 23)
    assert (shard.units("passages"), shard.live_terms("passages")) == (8, 33)
