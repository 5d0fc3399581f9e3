from __future__ import annotations

import io
from dataclasses import asdict, replace

import pytest

from cluster.answers import Answer, Guess, Question, RankedCitation, Sentence, TracedSource
from cluster.errors import CiteRayError
from commands.terminal import make_console
from serve.client.print_answer import print_answer, print_search
from serve.pipeline.appraise_answer import list_sides
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


def shown(answer: Answer, *, width: int = 200, details: bool = False) -> list[str]:
    out = io.StringIO()
    console = make_console(out)
    console.width = width
    print_answer(console, asdict(answer), details=details)
    return out.getvalue().splitlines()


def test_contradictions_marks_and_notices_are_printed() -> None:
    lines = shown(ANSWER, details=True)
    assert "  It helps. [1] contradicted by [2]" in lines
    place = lines.index("  against: PMID 2: no title")
    assert lines[place + 1] == "    abstract 0-16: It did not help."
    traced = replace(ANSWER.ideal[0], traced=TracedSource("primary", 3, 1))
    lines = shown(replace(ANSWER, ideal=(traced,)))
    assert "  PMID 1: no title [primary study, via PMID 3]" in lines
    assert "  Written by the language model" in lines
    assert "  Written by the language model smol" in shown(replace(ANSWER, written_by="smol"))
    assert "  Quoted from the abstracts" in shown(replace(ANSWER, origin="extractive"))
    own = Sentence("It may.", (), 0.0, unsupported=True)
    supported = (Sentence("It helped.", (1,), 0.9),)
    noted = replace(ANSWER.evidence[0], notice="Corrected.")
    answer = replace(ANSWER, ideal=(own, *ANSWER.ideal), evidence=(noted, noted), shown=(1,))
    lines = shown(replace(answer, supported=supported), details=True)
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
    assert not [line for line in lines if "Written by" in line]
    guess = Guess((Sentence("It may help.", (7,), 0.4),), [["iron", "Fe"]])
    lines = shown(replace(unsure, guess=guess))
    place = lines.index("  Best guess, which the evidence does not support well enough:")
    assert lines[place + 1 : place + 3] == ["    iron / Fe", "    It may help. [7]"]
    near = (RankedCitation(1, 1.0, {}, "[Not Available].", 2020), RankedCitation(2, 0.9))
    unsure = replace(ANSWER, verdict="not_enough_evidence", ideal=(), citations=near)
    assert shown(unsure)[3:5] == [
        '  PMID 1 (2020): no English title, "It helped."',
        "  PMID 2: no title",
    ]


def test_parts_are_printed_one_after_another() -> None:
    how = Question("q", "How?", "summary")
    second = replace(ANSWER, question=how, verdict="not_enough_evidence", ideal=())
    lines = shown(replace(ANSWER, parts=(ANSWER, second), answer_id="abc"))
    assert "  stored as abc" in lines
    named = ("Does it help? (summary)", NO_ANSWER, "How? (summary)")
    places = [lines.index(line) for line in named]
    assert places == sorted(places)
    assert lines.count("  It helps. [1] contradicted by [2]") == 1


def test_disagreeing_sources_are_quoted() -> None:
    for_, against, other = ANSWER.evidence
    sides = (
        replace(for_, stance="support", stance_on="yes"),
        replace(against, stance="contradict", stance_on="yes"),
        other,
    )
    mixed = replace(ANSWER, verdict="mixed", exact="yes", sides=list_sides(sides, ANSWER.ideal))
    lines = shown(mixed)
    assert lines[0] == "Sources disagree."
    assert '  Supports yes: "It helped." [PMID 1]' in lines
    assert '  Contradicts yes: "It did not help." [PMID 2]' in lines
    assert not [line for line in lines if "Answer:" in line]


def test_reply_of_another_version_is_refused() -> None:
    reply = asdict(ANSWER)
    del reply["verdict"]
    with pytest.raises(CiteRayError, match=r"verdict: is missing.*run the same version"):
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
    text = "\n".join(shown(answer, details=True))
    wanted = [f"{part} {DATA}" for part in ("question", "ideal", "caveat", "exact", "degraded")]
    wanted.append(f"0-{passage.end}: {DATA}")
    assert [line for line in wanted if line not in text] == []
    passage = replace(ANSWER.evidence[0].passage, text=f"text {DATA}")
    citation = RankedCitation(
        1, 0.5, title=f"title {DATA}", year=2001, retracted=True, notice=f"notice {DATA}"
    )
    reply = asdict(replace(ANSWER, evidence=(replace(ANSWER.evidence[0], passage=passage),)))
    out = io.StringIO()
    console = make_console(out)
    console.width = 200
    print_search(console, reply | {"citations": [asdict(citation)]})
    wanted = [f"title {DATA} (2001) RETRACTED", f"text {DATA}", f"notice {DATA}"]
    assert [line for line in wanted if line not in out.getvalue()] == []


def test_answer_wraps_at_words_and_names_its_sources() -> None:
    long = Sentence("Metformin lowers glucose output of the liver in adults. " * 3, (1,), 0.9)
    first = replace(ANSWER.evidence[0], title="On metformin", year=2020, journal="Lancet")
    answer = replace(ANSWER, ideal=(long,), evidence=(first,), timings_ms={"read": 5.0})
    lines = shown(answer, width=40)
    assert max(map(len, lines)) <= 40
    assert set(" ".join(lines).split()) >= set(long.text.split())
    assert "  PMID 1 (Lancet, 2020): On metformin" in lines


def test_offsets_timings_and_steps_are_printed_only_with_details() -> None:
    answer = replace(
        ANSWER, timings_ms={"read": 5.0}, candidates={"dense": 40}, shown=(0,), last_source="n1.xml"
    )
    internal = ("abstract 0-", "read 5 ms", "dense 40", "n1.xml", "the model was shown")
    plain, whole = "\n".join(shown(answer)), "\n".join(shown(answer, details=True))
    assert not [word for word in internal if word in plain]
    assert not [word for word in internal if word not in whole]
