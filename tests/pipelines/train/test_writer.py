"""`citeray train writer` and `citeray train namer`: training examples and adapters."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.settings import load_settings
from commands.cli import app
from commands.training.train_writer import writer_prompt
from pipelines.train.reader.bioasq import read_answered
from pipelines.train.recipe import NamerRecipe, WriterRecipe, read_recipe
from pipelines.train.writer.namer_examples import namer_examples
from pipelines.train.writer.train_writer import writer_examples
from serve.graph.load_stages import load_namer
from tests.pipelines.train.tiny_data import gold_row, write_gold
from tests.tiny_llama import make_tiny_llama

pytestmark = pytest.mark.model

SNIPPET = "Aspirin reduces fever in patients with influenza."
QUICK = ["rank=2", "tokens=2048", "max_tokens=2048", "epochs=30", "learning_rate=0.01", "warmup=0"]


def write_questions(path: Path) -> Path:
    answer = {"snippets": [{"text": SNIPPET}], "ideal_answer": ["Aspirin reduces fever."]}
    far = {**answer, "ideal_answer": ["Paracetamol prevents seizures during vaccination."]}
    return write_gold(
        path,
        gold_row(**answer),
        gold_row(body="What reduces fever?", type="summary", **answer),
        gold_row(body="What prevents seizures?", type="summary", **far),
    )


def test_answers_not_covered_by_snippets_are_excluded(tmp_path: Path) -> None:
    questions = read_answered([write_questions(tmp_path / "q.json")])
    recipe = read_recipe(WriterRecipe, "writer")
    examples = list(writer_examples(questions, writer_prompt, recipe, random.Random(0)))
    assert [example.answer for example in examples] == ["Aspirin reduces fever."] * 2
    yesno, summary = (example.messages[-1]["content"] for example in examples)
    assert f"[1] {SNIPPET}" in yesno
    assert "the answer is: Yes" in yesno
    assert "the answer is" not in summary


def test_namer_learns_a_gold_name_from_the_sentence_that_has_it(tmp_path: Path) -> None:
    answer = {"snippets": [{"text": f"Fever is common. {SNIPPET}"}], "ideal_answer": ["Aspirin."]}
    asked = {"body": "Which drug reduces fever?", "type": "factoid", **answer}
    right = gold_row(exact_answer=[["ASA", "aspirin"]], **asked)
    wrong = gold_row(exact_answer=[["ibuprofen"]], **asked)
    path = write_gold(tmp_path / "names.json", right, wrong)
    recipe = read_recipe(NamerRecipe, "namer", ["foreign=0"])
    (example,) = namer_examples(read_answered([path]), recipe, random.Random(0))
    prompt, name = example
    assert name == 'Aspirin"'
    assert prompt.endswith('The answer is "')
    assert all(text in prompt for text in ("Fever is common.", SNIPPET, "Which drug"))


@pytest.mark.nightly
def test_trained_writer_lowers_perplexity_and_resumes(tmp_path: Path) -> None:
    model = f"file:{make_tiny_llama(tmp_path / 'llama')}"
    questions, out = write_questions(tmp_path / "q.json"), tmp_path / "writer"
    options = [f"--set=llm.model={model}", f"--out={out}", "--json", "--licence=test"]
    quick = [f"--with={change}" for change in QUICK]
    asked = ["train", "writer", str(questions), f"--held-out={questions}", *options, *quick]
    first = CliRunner().invoke(app, asked)
    assert first.exit_code == 0, first.output
    measured = json.loads(first.stdout)["measured"]
    assert measured["perplexity"] < measured["perplexity before"] / 2
    training = json.loads((out / "training.json").read_text())
    described = (training["kind"], training["base"]["model"], training["licence"])
    assert described == ("writer", model, "test")
    again = CliRunner().invoke(app, asked)
    assert json.loads(again.stdout)["measured"] == pytest.approx(measured, rel=1e-2)
    other = CliRunner().invoke(app, [*asked, "--with=rank=4"])
    assert isinstance(other.exception, InputError)
    assert "another recipe" in str(other.exception)


@pytest.mark.nightly
def test_trained_namer_prefers_the_names_that_it_learned(tmp_path: Path) -> None:
    from cluster.models.name_scorer import NameScorer

    base = make_tiny_llama(tmp_path / "llama")
    answer = {"snippets": [{"text": SNIPPET}], "ideal_answer": ["Aspirin."]}
    row = gold_row(body="What reduces fever?", type="factoid", exact_answer=[["Aspirin"]], **answer)
    path, out = write_gold(tmp_path / "names.json", row), tmp_path / "namer"
    options = [f"--set=namer.model=file:{base}", f"--out={out}", "--json", "--licence=test"]
    quick = [f"--with={change}" for change in (*QUICK, "foreign=0")]
    done = CliRunner().invoke(app, ["train", "namer", str(path), *options, *quick])
    assert done.exit_code == 0, done.output
    settings = load_settings(None, [f"namer.model=file:{out}", "llm.kind=none"])
    scorer = load_namer(settings)
    assert isinstance(scorer, NameScorer)
    learned, other = scorer.score("What reduces fever?", [SNIPPET], ["Aspirin", "influenza"])
    assert learned > other


def test_writer_adapter_is_merged_into_the_served_model(tmp_path: Path) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from serve.llm_app import llm_folder

    base = make_tiny_llama(tmp_path / "llama")
    options = LoraConfig(
        task_type="CAUSAL_LM", r=2, target_modules=["q_proj"], init_lora_weights=False
    )
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(base), options)
    adapted.save_pretrained(tmp_path / "adapter")
    settings = load_settings(
        None, [f"llm.model=file:{base}", f"llm.adapter=file:{tmp_path / 'adapter'}"]
    )
    served = AutoModelForCausalLM.from_pretrained(llm_folder(settings))
    tokens = torch.arange(2, 40).unsqueeze(0)
    with torch.no_grad():
        assert torch.allclose(served(tokens).logits, adapted(tokens).logits, atol=1e-4)
