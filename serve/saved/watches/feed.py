"""Atom feed (RFC 4287) of the notable changes of a saved question."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode
from uuid import UUID

from lxml import etree

from cluster.errors import one_line
from serve.batches.jobs import when
from serve.saved.watches.watch_diff import diff_words
from serve.saved.watches.watch_store import Check, Watch

ATOM = "http://www.w3.org/2005/Atom"
MOST_ENTRIES = 50
MOST_TITLE = 200


def atom_feed(watch: Watch, notable: Sequence[Check]) -> bytes:
    """Return the feed in UTF-8. `notable` must be ordered from newest to oldest.

    The ids are those of the question and of its checks, and do not change. Links are relative,
    because the Host header of a request cannot be trusted.
    """
    feed = etree.Element("feed", {"xmlns": ATOM})
    _add(feed, "id", UUID(watch.id).urn)
    _add(feed, "title", f"CiteRay: {one_line(watch.question)}")
    newest = notable[0].created if notable else watch.created
    _add(feed, "updated", when(newest) or "")
    _add(etree.SubElement(feed, "author"), "name", "CiteRay")
    etree.SubElement(feed, "link", rel="self", type="application/atom+xml", href="feed")
    page = "/?" + urlencode({"q": watch.question, "system": watch.request.get("system", "")})
    etree.SubElement(feed, "link", rel="alternate", type="text/html", href=page)
    for check in notable[:MOST_ENTRIES]:
        _add_entry(feed, check, page)
    return etree.tostring(feed, xml_declaration=True, encoding="utf-8")


def _add_entry(feed: etree._Element, check: Check, page: str) -> None:
    words = diff_words(check.diff)
    entry = etree.SubElement(feed, "entry")
    _add(entry, "id", UUID(check.id).urn)
    title = one_line(words[0])
    _add(entry, "title", title if len(title) <= MOST_TITLE else f"{title[: MOST_TITLE - 3]}...")
    _add(entry, "updated", when(check.created) or "")
    etree.SubElement(entry, "link", rel="alternate", type="text/html", href=page)
    source = f"Index {check.version}, to {check.last_source}."
    _add(entry, "content", "\n".join([*map(one_line, words), one_line(source)]))


def _add(parent: etree._Element, name: str, text: str) -> None:
    etree.SubElement(parent, name).text = text
