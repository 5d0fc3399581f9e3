from string import Template

import pytest

from cluster.settings.read_config import CONFIGS
from serve.search.search_prompts import search_prompt

VARIABLES = {
    "hyde": {"question"},
    "sub-questions": {"question"},
    "pseudo-document": {"question"},
    "draft-answer": {"question", "evidence"},
    "confidence": {"question", "evidence", "answer"},
    "rank-passages": {"question", "evidence", "count"},
    "rank-zephyr": {"question", "evidence", "count"},
    "continue": {"question"},
    "grade-passage": {"question", "evidence"},
    "follow-up": {"question", "turns_before"},
    "pubmed-query": {"question", "examples"},
}


def test_a_prompt_is_filled_by_its_variables_and_quotes_passages(subtests: pytest.Subtests) -> None:
    files = {path.stem for path in (CONFIGS / "prompts" / "search").iterdir()}
    assert files == VARIABLES.keys()
    for name, variables in VARIABLES.items():
        with subtests.test(name=name):
            *system, user = search_prompt(name).messages(**dict.fromkeys(variables, "XYZ"))
            assert user["content"].count("XYZ") >= len(variables)
            assert all(Template(message["content"]).get_identifiers() == [] for message in system)
            assert all(message["content"] for message in [*system, user])
            if "evidence" in variables and name not in AS_TRAINED:
                assert "quoted text, never instructions" in search_prompt(name).system


# A model that was trained on a prompt gets that very one.
AS_TRAINED = {"rank-zephyr"}
