from __future__ import annotations

import io
from dataclasses import asdict, replace

import pytest

from cluster.answers import Answer, Question, RankedCitation, Sentence
from cluster.errors import CiteRayError
from commands.terminal import make_console
from serve.client.print_answer import print_answer, print_search
from serve.wording.verdict_words import NO_ANSWER
from tests.serve.answering import answer, evidence

ANSWER = replace(
    answer("Does it help?"),
    question=Question("q", "Does it help?", "summary"),
    ideal=(Sentence("It helps.", (1,), 0.9, (2,)),),
    origin="generated",
    evidence=tuple(evidence("It helped.", "It did not help.", "Cats sleep.")),
    coverage="1/1",
)


def shown(answer: Answer) -> list[str]:
    out = io.StringIO()
    console = make_console(out)
    console.width = 200
    print_answer(console, asdict(answer))
    return out.getvalue().splitlines()


def test_contradictions_marks_and_notices_are_printed() -> None:
    lines = shown(ANSWER)
    assert "  It helps. [1] contradicted by [2]" in lines
    assert "    against: PMID 2 abstract 0-16: It did not help...." in lines
    own = Sentence("It may.", (), 0.0, unsupported=True)
    supported = (Sentence("It helped.", (1,), 0.9),)
    noted = replace(ANSWER.evidence[0], notice="Corrected.")
    told = replace(ANSWER, ideal=(own, *ANSWER.ideal), evidence=(noted, noted), shown=(1,))
    lines = shown(replace(told, supported=supported))
    for line in (
        "  It may. (no evidence supports this)",
        "  because: It helped. [1]",
        "  PMID 1: Corrected.",
        "  the model was shown 1 of 2 passages",
    ):
        assert line in lines


def test_answer_without_evidence_lists_the_nearest_citations() -> None:
    near = (RankedCitation(7, 1.0, {}, "On [iron]", 2020), RankedCitation(8, 0.9))
    unsure = replace(ANSWER, verdict="not_enough_evidence", ideal=(), origin="none", citations=near)
    lines = shown(replace(unsure, caveats=("PMID 7 warns.",)))
    assert lines[:6] == [
        NO_ANSWER,
        "Does it help? (summary)",
        "  PMID 7 warns.",
        "  Nearest citations:",
        "  PMID 7 (2020): On [iron]",
        "  PMID 8: no title",
    ]
    assert not [line for line in lines if "written by" in line]
    near = (RankedCitation(1, 1.0, {}, "[Not Available].", 2020), RankedCitation(2, 0.9))
    unsure = replace(ANSWER, verdict="not_enough_evidence", ideal=(), citations=near)
    assert shown(unsure)[3:5] == [
        '  PMID 1 (2020): no English title, "It helped."',
        '  PMID 2: no English title, "It did not help."',
    ]


def test_disagreeing_sources_are_quoted() -> None:
    for_, against, other = evidence("It helped.", "It did not help.", "Cats sleep.")
    sides = (
        replace(for_, stance="support", stance_on="yes"),
        replace(against, stance="contradict", stance_on="yes"),
        other,
    )
    lines = shown(replace(ANSWER, verdict="mixed", exact="yes", evidence=sides))
    assert lines[0] == "Sources disagree. The evidence leans to yes."
    assert '  Supports yes: "It helped." [PMID 1]' in lines
    assert '  Contradicts yes: "It did not help." [PMID 2]' in lines
    assert not [line for line in lines if "exact:" in line]


def test_reply_of_another_version_is_refused() -> None:
    reply = asdict(ANSWER)
    del reply["verdict"]
    with pytest.raises(CiteRayError, match=r"verdict: Field required.*run the same version"):
        print_answer(make_console(io.StringIO()), reply)


DATA = "Plague [bold]of Tonkin[/bold], 1:100:1000 and dog:cat:rat [/b] :skull:"


def test_markup_in_texts_is_printed_literally() -> None:
    passage = replace(ANSWER.evidence[0].passage, text=DATA)
    answer = replace(
        ANSWER,
        question=Question("q", f"question {DATA}", "factoid"),
        ideal=(Sentence(f"ideal {DATA}", (1,), 0.9),),
        exact=((f"exact {DATA}",),),
        caveats=(f"caveat {DATA}",),
        evidence=(replace(ANSWER.evidence[0], passage=passage),),
        degraded=(f"degraded {DATA}",),
    )
    text = "\n".join(shown(answer))
    wanted = [f"{part} {DATA}" for part in ("question", "ideal", "caveat", "exact", "degraded")]
    wanted.append(f"0-{passage.end}: {DATA}")
    assert [line for line in wanted if line not in text] == []
    passage = replace(ANSWER.evidence[0].passage, text=f"text {DATA}")
    citation = RankedCitation(
        1, 0.5, title=f"title {DATA}", year=2001, retracted=True, notice=f"notice {DATA}"
    )
    reply = asdict(replace(ANSWER, evidence=(replace(ANSWER.evidence[0], passage=passage),)))
    out = io.StringIO()
    print_search(make_console(out), reply | {"citations": [asdict(citation)]})
    wanted = [f"title {DATA} (2001) RETRACTED", f"text {DATA}", f"notice {DATA}"]
    assert [line for line in wanted if line not in out.getvalue()] == []
