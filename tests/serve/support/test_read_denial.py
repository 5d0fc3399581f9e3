"""Names that a sentence denies are no answers; those of clauses beside them are."""

from __future__ import annotations

import pytest

from serve.answer.names.name_kinds import asked_words
from serve.support.read_denial import denies_name

HAEMOLYSIS = "Which drugs can cause haemolysis in G6PD deficiency?"
MUMPS = "What are the symptoms of mumps?"
ITP = "Which drugs treat ITP?"


# Of each sentence the names in [] are denied, those in <> are not.
def test_what_a_clause_denies_is_denied(subtests: pytest.Subtests) -> None:
    for body, marked in [
        (HAEMOLYSIS, "<Primaquine> and <dapsone> cause it; [aspirin] and [codeine] do not."),
        (HAEMOLYSIS, "<Primaquine> causes haemolysis in G6PD deficiency and [aspirin] does not."),
        (HAEMOLYSIS, "<Primaquine>, but not [aspirin], causes haemolysis."),
        (HAEMOLYSIS, "[Codeine] and [aspirin] do not cause haemolysis, whereas <dapsone> does."),
        (HAEMOLYSIS, "Haemolysis was not caused by [aspirin], [codeine] or [ibuprofen]."),
        (HAEMOLYSIS, "<Dapsone>, which is not an antimalarial, causes haemolysis."),
        (HAEMOLYSIS, "There was no evidence of [aspirin] causing haemolysis."),
        (HAEMOLYSIS, "[Aspirin] can't cause haemolysis."),
        (MUMPS, "There was <swelling> of the gland without [fever], [rash] or [cough]."),
        (MUMPS, "Without treatment, <swelling> follows."),
        (ITP, "Patients who do not respond to <steroids> receive <rituximab>."),
        (ITP, "<Rituximab> does not only treat ITP but lupus."),
        (ITP, "The effect of <dexamethasone> and <rituximab> on ITP was not studied."),
        (
            "Which gene is mutated in Rett?",
            "No mutation of [FGFR3] was found; <MECP2> was mutated.",
        ),
    ]:
        with subtests.test(body=body, marked=marked):
            sentence = marked.translate(dict.fromkeys(map(ord, "[]<>")))
            for name in filter(
                None, marked.replace("[", "\n[").replace("<", "\n<").split("\n")[1:]
            ):
                word = name[1:].split(">" if name[0] == "<" else "]")[0]
                begin = sentence.index(word)
                denied = denies_name(sentence, begin, begin + len(word), asked_words(body))
                assert denied == (name[0] == "["), word
