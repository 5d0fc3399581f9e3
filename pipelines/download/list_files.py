"""What NCBI's folders of PubMed files hold, read from their index pages.

    BASE/baseline/pubmed26n0001.xml.gz        once a year, all citations
    BASE/updatefiles/pubmed26n1335.xml.gz     every day, numbered on from the baseline
    .../pubmed26n0001.xml.gz.md5              beside each

Source: https://ftp.ncbi.nlm.nih.gov/pubmed/ and its README files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from cluster.errors import CiteRayError
from pipelines.build.find_sources import BASELINE, UPDATES, natural_key

# Ten times the page of 1,500 files with their checksums.
MAX_LISTING_BYTES = 4 * 1024**2
# A name becomes a path here: nothing but a plain file name may come from a server.
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*\.xml\.gz", re.ASCII)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a server; its checksum is at `url` + ".md5"."""

    folder: str
    name: str
    url: str

    @property
    def number(self) -> int:
        """The last number in the name, which counts baseline and update files on."""
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
    """The names of the .xml.gz files that an index page links to in its own folder.

    They come once each, in number order. Raises CiteRayError for a page without links.
    """
    links = _Links()
    links.feed(page)
    if not links.hrefs:
        raise CiteRayError(
            f"{folder_url}: it is not the index page of a folder, as it holds no link; "
            "check --base-url"
        )
    names = set()
    for href in links.hrefs:
        try:
            target = urlsplit(urljoin(folder_url, href))
        except ValueError:  # such as a port that is no number: no file of this folder
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
    """The files to have, baseline first, each folder in number order.

    `read` gives the text at a URL of at most so many bytes. Of the updates only those
    numbered above `since` are taken, and of all only the first `limit`. Raises
    CiteRayError if a folder cannot be read or the baseline is empty; updates may be, as
    they are when a year's baseline is new.
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
