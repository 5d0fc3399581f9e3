import pytest

from cluster.errors import CiteRayError
from pipelines.download.list_files import list_files, parse_listing

BASE = "https://example.org/pubmed"
FOLDER = f"{BASE}/baseline/"


def page(*hrefs: str) -> str:
    return "<pre>" + "".join(f'<a href="{href}">x</a>' for href in hrefs) + "</pre>"


def listed(pages: dict[str, str], **options: object) -> list[str]:
    def read(url: str, limit: int) -> str:
        return pages[url.removeprefix(BASE).strip("/")]

    return [f.name for f in list_files(read, BASE, **options)]  # type: ignore[arg-type]


TWO = {
    "baseline": page("../", "pubmed26n0002.xml.gz", "pubmed26n0001.xml.gz"),
    "updatefiles": page("../", "pubmed26n0003.xml.gz", "pubmed26n0004.xml.gz"),
}


def test_listing_returns_distinct_xml_gz_files_by_number() -> None:
    hrefs = ["p26n10.xml.gz", "./p26n9.xml.gz", "p26n10.xml.gz", FOLDER + "p25n11.xml.gz"]
    hrefs += ["a1.xml.gz.md5", "README.txt", "?C=N;O=D", "/pubmed/baseline/p26n12.xml.gz"]
    names = ["p25n11.xml.gz", "p26n9.xml.gz", "p26n10.xml.gz", "p26n12.xml.gz"]
    assert parse_listing(page(*hrefs), FOLDER) == names


def test_links_outside_the_folder_are_ignored(subtests: pytest.Subtests) -> None:
    for href in [
        "../updatefiles/a1.xml.gz",
        "https://elsewhere.org/pubmed/baseline/a1.xml.gz",
        "%2e%2e%2fa1.xml.gz",
        "..%2fa1.xml.gz",
        ".a1.xml.gz",
        "http://[bad/a1.xml.gz",
        "a1\\b.xml.gz",
    ]:
        with subtests.test(href=href):
            assert parse_listing(page(href), FOLDER) == []


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ({}, ["0001", "0002", "0003", "0004"]),
        ({"updates": False}, ["0001", "0002"]),
        ({"baseline": False}, ["0003", "0004"]),
        ({"baseline": False, "since": 3}, ["0004"]),
        ({"limit": 3}, ["0001", "0002", "0003"]),
    ],
)
def test_baseline_precedes_updates_and_either_can_be_omitted(
    options: dict[str, object], numbers: list[str]
) -> None:
    assert [n[9:13] for n in listed(TWO, **options)] == numbers


def test_page_without_links_and_empty_baseline_are_refused() -> None:
    with pytest.raises(CiteRayError, match=r"baseline/: it is not the index page.*--base-url"):
        parse_listing("<html>Please log in</html>", FOLDER)
    with pytest.raises(CiteRayError, match=r"baseline/: it lists no \.xml\.gz file"):
        listed(TWO | {"baseline": page("../")})
    assert len(listed(TWO | {"updatefiles": page("../")})) == 2
