"""Entities and other constructs make the parser neither read files or URLs nor use much memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from lxml import etree

from tests.cluster.pubmed_sets import article
from tests.hostile.cpu_time import cpu_within
from tests.hostile.hostile_sets import outcome, set_of
from tests.recorders import Recorder, recorder

SECRET = "the-planted-secret"


class Trap:
    """A file and a server that must not be read; both return or declare a secret."""

    def __init__(self, folder: Path, server: Recorder) -> None:
        self.asked = server.received
        self.url = f"http://127.0.0.1:{server.port}/x"
        (folder / "secret.txt").write_text(SECRET)
        (folder / "secret.dtd").write_text(f'<!ENTITY x "{SECRET}">')
        self.text, self.dtd = ((folder / f"secret.{end}").as_uri() for end in ("txt", "dtd"))


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trap]:
    with recorder(f'<!ENTITY x "{SECRET}">'.encode()) as server:
        yield Trap(tmp_path_factory.mktemp("trap"), server)


DOCTYPES = {
    "general": '<!DOCTYPE PubmedArticleSet [<!ENTITY x SYSTEM "{}">]>',
    "public": '<!DOCTYPE PubmedArticleSet [<!ENTITY x PUBLIC "p" "{}">]>',
    "parameter": '<!DOCTYPE PubmedArticleSet [<!ENTITY % p SYSTEM "{}"> %p;]>',
    "declared by a parameter": (
        "<!DOCTYPE PubmedArticleSet [<!ENTITY % p \"<!ENTITY x SYSTEM '{}'>\"> %p;]>"
    ),
    "of the external subset": '<!DOCTYPE PubmedArticleSet SYSTEM "{}">',
    "of the public subset": '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD//EN" "{}">',
    "unparsed": (
        '<!DOCTYPE PubmedArticleSet [<!NOTATION n SYSTEM "{0}"><!ENTITY x SYSTEM "{0}" NDATA n>]>'
    ),
    "a style sheet": '<?xml-stylesheet type="text/xsl" href="{}"?>',
}
BODIES = {
    "text": "<ArticleTitle>&x;</ArticleTitle>",
    "attribute": '<ArticleTitle>T</ArticleTitle><Abstract><AbstractText Label="&x;">t'
    "</AbstractText></Abstract>",
    "inclusion": '<ArticleTitle xmlns:i="http://www.w3.org/2001/XInclude"><i:include '
    'href="{}" parse="text"/>T</ArticleTitle>',
    "schema": '<ArticleTitle xmlns:s="http://www.w3.org/2001/XMLSchema-instance" '
    's:noNamespaceSchemaLocation="{}">T</ArticleTitle>',
}


def test_external_entities_are_not_loaded(trap: Trap, subtests: pytest.Subtests) -> None:
    for doctype, body in product(DOCTYPES, BODIES):
        with subtests.test(doctype=doctype, body=body):
            for address in (trap.text, trap.dtd, trap.url):
                inside, kind = BODIES[body].format(address), DOCTYPES[doctype].format(address)
                records, sentence = outcome(set_of(article(inside=inside), doctype=kind))
                assert SECRET not in f"{records} {sentence}"
                assert records or sentence
            assert trap.asked == []


def test_unsafe_parser_would_read_the_planted_file(trap: Trap) -> None:
    data = set_of("<a>&x;</a>", doctype=DOCTYPES["general"].format(trap.text))
    careless = etree.XMLParser(resolve_entities=True, load_dtd=True)
    assert SECRET in "".join(etree.fromstring(data, careless).itertext())


def laughs(count: int) -> str:
    levels = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(count))
    return f'<!ENTITY e0 "ha">{levels}<!ENTITY x "&e{count};">'


BOMBS = {
    "laughs": laughs(12),
    "quadratic": f'<!ENTITY e "{"a" * 20_000}"><!ENTITY x "{"&e;" * 3_000}">',
    "parameters": (
        "<!ENTITY % a '<!ENTITY &#37; b \"<!ENTITY x \\'boom\\'>\"> &#37;b;'> %a;"
        + "<!ENTITY % l0 '<!-- ha -->'>"
        + "".join(f"<!ENTITY % l{n + 1} '{f'&#37;l{n};' * 10}'>" for n in range(12))
        + "%l12;"
    ),
    "itself": '<!ENTITY x "&y;"><!ENTITY y "&x;">',
    "beyond the first read": f"<!--{'c' * 200_000}-->{laughs(12)}",
    "default attributes": f'<!ATTLIST a b CDATA "{"a" * 20_000}">',
}


def test_entity_bombs_are_refused_quickly_and_the_next_file_is_read(
    subtests: pytest.Subtests,
) -> None:
    for name, uses in product(BOMBS, ["&x;", '<i a="&x;"/>', "&x;" * 5_000, "<a/>" * 30_000]):
        doctype = f"<!DOCTYPE PubmedArticleSet [{BOMBS[name]}]>"
        data = set_of(article(inside=f"<ArticleTitle>{uses}</ArticleTitle>"), doctype=doctype)
        with subtests.test(name, uses=uses[:9]):
            with cpu_within(2):
                records, sentence = outcome(data)
            # A bomb that is not used is not expanded, so the record stays small.
            assert sentence or len(repr(records)) < 10_000
            assert len(outcome(set_of(article()))[0]) == 1


def test_references_to_undeclared_entities_are_kept() -> None:
    # References among links, between records, and as the only content of a record.
    links = "<CommentsCorrectionsList>&x;</CommentsCorrectionsList>"
    records, sentence = outcome(
        set_of(article(after=links), "&x;", "<PubmedArticle>&x;</PubmedArticle>", "&x;")
    )
    assert sentence == ""
    details = [getattr(r, "detail", "") for r in records]
    assert details[1:] == [
        "PubmedArticleSet has a child reference to an entity, which is no kind of record",
        "MedlineCitation/PMID is missing",
        "PubmedArticleSet has a child reference to an entity, which is no kind of record",
    ]
