"""Links between pages resolve, on GitHub and in the site."""

from __future__ import annotations

import re

import pytest
import yaml

from docs.build_site import PAGES as INCLUDED
from docs.build_site import site_link
from tests.documentation import DOCS, FENCED, INLINE, ROOT, TEXTS

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def links(page: str) -> list[str]:
    return LINK.findall(INLINE.sub("", FENCED.sub("", TEXTS[page])))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.M)
    plain = (re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading) for heading in headings)
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in plain}


def resolves(page: str, link: str) -> bool:
    """Return whether a link without a host leads to a file, and its anchor to a heading."""
    path, _, anchor = link.partition("#")
    there = ROOT / page if not path else (ROOT / page).parent / path
    if not there.resolve().is_relative_to(ROOT) or not there.exists():
        return False
    return not anchor or anchor in anchors(there.read_text(encoding="utf-8"))


def test_every_internal_link_resolves() -> None:
    internal = [(page, link) for page in TEXTS for link in links(page) if "://" not in link]
    assert len(internal) > 100
    assert [(page, link) for page, link in internal if not resolves(page, link)] == []


def test_links_of_site_pages_stay_within_the_site(caplog: pytest.LogCaptureFixture) -> None:
    pages = {*INCLUDED.values(), *(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.*"))}
    leaving = []
    for page in TEXTS.keys() - {"README.md"}:
        place = INCLUDED.get(page) or page.removeprefix("docs/")
        for link in links(page):
            if "://" not in link and not link.startswith("#"):
                to = site_link(page, place, link.partition("#")[0])
                there = (ROOT / place).parent.joinpath(to).resolve()
                if str(there.relative_to(ROOT)) not in pages:
                    leaving.append((page, link))
    assert leaving == []
    assert not caplog.records


def test_navigation_has_every_page_once() -> None:
    def pages(node: object) -> list[str]:
        if isinstance(node, str):
            return [node]
        below = node.values() if isinstance(node, dict) else node
        return [page for child in below for page in pages(child)]  # type: ignore[attr-defined]

    shown = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    own = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    assert sorted(shown) == sorted([*own, *INCLUDED.values()])


def test_site_loads_nothing_from_another_host() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["theme"]["font"] is False
    assert not {"extra_javascript", "extra_css"} & settings.keys()
    for diagram in DOCS.glob("diagrams/*.svg"):
        hosts = set(re.findall(r"https?://[^\"'\s<]+", diagram.read_text(encoding="utf-8")))
        assert hosts <= {"http://www.w3.org/2000/svg"}
