"""An answer from a review cites the trial that it reports: default models, through HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from serve.graph.local_graph import local_answerer
from tests.answers.collection import build_index, settings_for
from tests.serve.api import make_api
from tests.serve.service import SmallService
from tests.small_index import citation

pytestmark = pytest.mark.nightly

REVIEW, TRIAL, OTHER_DRUG = 201, 202, 203
QUESTION = "What does empagliflozin do in heart failure with a preserved ejection fraction?"
SAID = (
    "In heart failure with a preserved ejection fraction, empagliflozin lowered the rate of "
    "cardiovascular death or hospital admission for heart failure by 21%."
)
CORPUS = [
    citation(
        REVIEW,
        f"Gliflozins were developed to lower glucose. {SAID} Their use in children is unclear.",
        "Gliflozins beyond glucose: a review",
        publication_types=("Review",),
        references=(OTHER_DRUG, TRIAL),
        year=2023,
    ),
    citation(
        TRIAL,
        "Few drugs had changed outcome. In 5,988 patients with an ejection fraction above 40%, "
        "empagliflozin lowered the combined rate of cardiovascular death and hospital admission "
        "for heart failure by 21% (13.8% against 17.1% over 26 months).",
        "Empagliflozin when the ejection fraction is preserved",
        publication_types=("Randomized Controlled Trial",),
        year=2021,
    ),
    citation(
        OTHER_DRUG,
        "In 4,822 patients with heart failure and a preserved ejection fraction, candesartan did "
        "not lower cardiovascular death, and hospital admission fell by 16%.",
        "Candesartan when the ejection fraction is preserved",
        publication_types=("Randomized Controlled Trial",),
        year=2003,
    ),
]


def test_answer_from_a_review_cites_the_trial_that_it_reports(tmp_path: Path) -> None:
    settings = settings_for(build_index(tmp_path, CORPUS))
    service = SmallService(citations=CORPUS)
    service._answerer = local_answerer(settings)
    asked = {"question": QUESTION, "type": "summary", "max_wrong": 1.0}
    http = TestClient(make_api(service), base_url="http://localhost")
    answer = http.post("/v1/answer", json=asked).json()
    (sentence,) = [sentence for sentence in answer["ideal"] if sentence["text"] == SAID]
    assert sentence["traced"] == {"kind": "primary", "via": REVIEW, "pmid": TRIAL}
    assert {REVIEW, TRIAL} <= set(sentence["pmids"])
    assert OTHER_DRUG not in sentence["pmids"]
