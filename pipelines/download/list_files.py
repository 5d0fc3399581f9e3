"""List NCBI's folders of PubMed files from their index pages.

    BASE/baseline/pubmed26n0001.xml.gz        once a year, all citations
    BASE/updatefiles/pubmed26n1335.xml.gz     every day; numbers continue those of the baseline
    .../pubmed26n0001.xml.gz.md5              checksum of each file

Source: https://ftp.ncbi.nlm.nih.gov/pubmed/ and its README files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from cluster.errors import CiteRayError
from pipelines.indexing.sources.find_sources import BASELINE, UPDATES, natural_key

# Ten times the size of a page that lists 1,500 files with their checksums.
MAX_LISTING_BYTES = 4 * 1024**2
# Names from the server become local paths, so only plain file names are accepted.
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*\.xml\.gz", re.ASCII)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file on the server; its checksum is at `url` + ".md5"."""

    folder: str
    name: str
    url: str

    @property
    def number(self) -> int:
        """Return the last number in the name; baseline and update files share one sequence."""
        numbers = re.findall(r"\d+", self.name)
        return int(numbers[-1]) if numbers else 0


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.hrefs += [value for name, value in attrs if name == "href" and value]


def parse_listing(page: str, folder_url: str) -> list[str]:
    """Return the names of the .xml.gz files that an index page links to in its own folder.

    Names are distinct and in the order of their numbers. Raises CiteRayError for a page without
    links.
    """
    links = _Links()
    links.feed(page)
    if not links.hrefs:
        raise CiteRayError(
            f"{folder_url}: it is not the index page of a folder: it has no links; check --base-url"
        )
    names = set()
    for href in links.hrefs:
        try:
            target = urlsplit(urljoin(folder_url, href))
        except ValueError:  # an invalid URL, such as one whose port is not a number
            continue
        name = unquote(target.path.rpartition("/")[2])
        beside = urljoin(folder_url, target.path.rpartition("/")[2])
        if _NAME.fullmatch(name) and target._replace(query="", fragment="").geturl() == beside:
            names.add(name)
    return sorted(names, key=natural_key)


def list_files(
    read: Callable[[str, int], str],
    base_url: str,
    *,
    baseline: bool = True,
    updates: bool = True,
    since: int = 0,
    limit: int | None = None,
) -> list[RemoteFile]:
    """Return the files to download: the baseline, then the updates, each in order of its numbers.

    `read` returns the text at a URL, of at most the given number of bytes. Updates are limited to
    numbers above `since`, and the whole list to the first `limit` files. Raises CiteRayError if a
    folder cannot be read or the baseline is empty. The folder of updates may be empty, as it is
    after a new baseline.
    """
    found: list[RemoteFile] = []
    for folder in (BASELINE,) * baseline + (UPDATES,) * updates:
        url = f"{base_url.rstrip('/')}/{folder}/"
        names = parse_listing(read(url, MAX_LISTING_BYTES), url)
        if folder == BASELINE and not names:
            raise CiteRayError(f"{url}: it lists no .xml.gz file; check --base-url")
        files = [RemoteFile(folder, name, urljoin(url, name)) for name in names]
        found += [f for f in files if folder == BASELINE or f.number > since]
    return found[:limit]
