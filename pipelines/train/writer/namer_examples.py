"""Training examples of the namer: sentences of a question's snippets, and a name from them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from cluster.models.name_scorer import END, naming_prompt
from cluster.text.sentences import sentence_spans
from pipelines.train.examples.mark_names import find_names
from pipelines.train.reader.bioasq import AnsweredQuestion
from pipelines.train.recipe import NamerRecipe


def namer_examples(
    questions: Sequence[AnsweredQuestion], recipe: NamerRecipe, draw: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield a prompt and its name for each question with a gold name that a snippet contains."""
    sentences = [_sentences(question) for question in questions]
    for question, own in zip(questions, sentences, strict=True):
        named = [
            (text, text[mark.begin : mark.end])
            for text in own
            for mark in find_names(text, question.names)
            if mark.end - mark.begin <= recipe.max_characters
        ]
        if not named:
            continue
        chosen, name = draw.choice(named)
        others = [text for text in own if text != chosen]
        texts = draw.sample(others, min(len(others), draw.randint(1, recipe.others)))
        foreign = draw.choice(sentences)
        if foreign and draw.random() < recipe.foreign:
            texts.append(draw.choice(foreign))
        texts.append(chosen)
        draw.shuffle(texts)
        yield naming_prompt(question.text, texts), name + END


def _sentences(question: AnsweredQuestion) -> list[str]:
    return [
        snippet[begin:end]
        for snippet in question.snippets
        for begin, end in sentence_spans(snippet)
    ]
