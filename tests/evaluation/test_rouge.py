"""Expected values are calculated by hand, or printed by ROUGE-1.5.5.

The latter (`PRINTED` and the figures of the dev questions) were printed by ROUGE-1.5.5.pl, run
with `-c 95 -2 4 -u -x -n 4 -d -z SPL` on the texts given here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation.bioasq.rouge import MEASURES, Rouge, rouge_2, rouge_su4, score_ideal, tokenise

DEV = Path(__file__).resolve().parents[2].parent / "shared/data/bioasq/questions-dev.json"

# References, answer, and (recall, precision, F1) of ROUGE-2 and of ROUGE-SU4.
PRINTED = {
    "one reference": (["The drug slows the growth of tumours."], "This drug slows tumour growth.",
        (0.16667, 0.25, 0.2), (0.19231, 0.35714, 0.25)),
    "two references": (["The drug slows the growth of tumours.", "Growth of the tumour is slowed."],
        "The drug slows growth of the tumour.",
        (0.54545, 0.5, 0.52174), (0.6087, 0.53846, 0.57143)),
    "three references of unlike length": (["Yes.",
        "Yes, it does, in mice and in rats.",
        "It does so in mice only, and no trial in man has been published."],
        "It does in mice and in rats.",
        (0.4, 0.44444, 0.42105), (0.43, 0.55128, 0.48315)),
    "four references": (["aspirin helps", "aspirin does help", "no, aspirin harms", "it helps"],
        "aspirin helps, it does help",
        (0.33333, 0.125, 0.18182), (0.64286, 0.16071, 0.25714)),
    "the same reference twice": (["a b c d", "a b c d"], "a b d c",
        (0.33333, 0.33333, 0.33333), (0.77778, 0.77778, 0.77778)),
    "words repeated": (["the the the cat", "the cat the cat"], "the the cat the the cat the",
        (1.0, 0.5, 0.66667), (1.0, 0.34615, 0.51428)),
    "hyphens": (["COVID-19 is caused by SARS-CoV-2."], "SARS CoV 2 causes covid19, or COVID - 19.",
        (0.42857, 0.42857, 0.42857), (0.21875, 0.21875, 0.21875)),
    "digits and signs": (["A dose of 12.5 mg (p < 0.05) in 10% of cases, $5 each"],
        "a dose of 12 5 mg, p 0 05, in 10 of cases; 5 each",
        (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
    "letters outside ASCII": (["TGF-β1 and naïve cells: 5\u201310 µm"],
        "TGF 1 and na ve cells, 5 10 m",
        (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
    "several lines": (["First line here.\n\nSecond line there.\n"],
        "line here second\nline there third",
        (0.8, 0.8, 0.8), (0.7, 0.7, 0.7)),
    "more than four words between": (["one two three four five six seven"],
        "one x x x x seven one seven",
        (0.0, 0.0, 0.0), (0.03846, 0.03125, 0.03448)),
    "one word each": (["Aspirin"], "aspirin",
        (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "one word against many": (["Aspirin, of course"], "aspirin",
        (0.0,) * 3, (0.0,) * 3),
    "an empty answer": (["Aspirin helps", "It helps"], "",
        (0.0,) * 3, (0.0,) * 3),
    "an empty reference": (["", "It helps a lot"], "It helps",
        (0.33333, 0.5, 0.4), (0.22222, 0.5, 0.30769)),
    "only signs": (["- -- ...", "β"], "(?)",
        (0.0,) * 3, (0.0,) * 3),
    "nothing shared": (["alpha beta gamma"], "delta epsilon zeta",
        (0.0,) * 3, (0.0,) * 3),
    "case and underscore": (["IL_6 AND Il-6 and il6"], "il 6 and IL6 and il_6",
        (0.83333, 0.83333, 0.83333), (0.76923, 0.76923, 0.76923)),
}  # fmt: skip


def rouge_2_and_su4(references: list[str], said: str) -> tuple[Rouge, Rouge]:
    wanted = [tokenise(text) for text in references]
    return rouge_2(wanted, tokenise(said)), rouge_su4(wanted, tokenise(said))


def test_tokenise_drops_non_ascii_letters() -> None:
    assert tokenise("\u212a 1\u0130b ﬁt don't x_y") == ["1", "b", "t", "don", "t", "x", "y"]


def test_rouge_matches_hand_calculation() -> None:
    # Bigrams: aspirin-helps, helps-it against aspirin-helps: 1 hit, recall 1/1, precision 1/2.
    # Skip-bigrams of the reference: aspirin, aspirin-helps. Of the answer: aspirin, helps,
    # aspirin-helps, aspirin-it, helps-it. 2 hits: recall 2/2, precision 2/5.
    assert score_ideal(["Aspirin helps."], "aspirin helps it") == {
        "ROUGE-2 recall": 1.0,
        "ROUGE-2 F1": round(2 * 1 * (1 / 2) / (1 + 1 / 2), 5),
        "ROUGE-SU4 recall": 1.0,
        "ROUGE-SU4 F1": round(2 * 1 * (2 / 5) / (1 + 2 / 5), 5),
    }


def test_rouge_of_empty_text_is_zero() -> None:
    nothing = dict.fromkeys(MEASURES, 0.0)
    for references, said in [([], "a b c"), ([""], ""), (["a b"], "")]:
        assert score_ideal(references, said) == nothing


def test_rouge_matches_the_original_program(subtests: pytest.Subtests) -> None:
    for name in PRINTED:
        with subtests.test(name=name):
            references, said, bigrams, skips = PRINTED[name]
            found = rouge_2_and_su4(references, said)
            assert tuple(score.rounded() for score in found) == (bigrams, skips)


@pytest.mark.slow
def test_rouge_of_real_questions_matches_the_program() -> None:
    if not DEV.exists():
        pytest.skip("needs BioASQ's dev questions")
    questions = json.loads(DEV.read_text())["questions"]
    answers = [
        (question["ideal_answer"], " ".join(s["text"] for s in question["snippets"][:3]))
        for question in questions
    ]
    assert len(answers) == 327
    # The first three gold snippets as the answer: sums of the 327 figures, to all five digits.
    found = [[score.rounded() for score in rouge_2_and_su4(*answer)] for answer in answers]
    sums = [
        [sum(column) for column in zip(*rows, strict=True)] for rows in zip(*found, strict=True)
    ]
    assert sums[0] == pytest.approx([156.77327, 78.11578, 95.38713], abs=1e-9)
    assert sums[1] == pytest.approx([156.9824, 75.69213, 92.35382], abs=1e-9)
