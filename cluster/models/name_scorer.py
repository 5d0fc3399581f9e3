"""Score names by how probable a causal language model finds them as the answer.

The model reads the question and the best sentences of the evidence once; the names, which share
this prompt, are then scored together. `citeray train namer` trains the model with the same prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer

from cluster.models.adapters import quiet_loading
from cluster.models.hardware import choose_device, choose_dtype
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable

# A name ends before this character.
END = '"'
# ChatML, which the base model of the shipped adapter was trained with.
_PROMPT = (
    "<|im_start|>user\n{evidence}\n\nQuestion: {question}\n"
    "Reply with the name, number or short phrase that answers the question.<|im_end|>\n"
    '<|im_start|>assistant\nThe answer is "'
)


def naming_prompt(question: str, sentences: Sequence[str]) -> str:
    """Return the prompt that a name completes; `sentences` are numbered from 1."""
    lines = [f"[{number}] {_plain(text)}" for number, text in enumerate(sentences, start=1)]
    return _PROMPT.format(evidence="\n".join(lines), question=_plain(question))


def _plain(text: str) -> str:
    """Return `text` without the model's control tokens, so that it cannot end its own turn."""
    return text.replace("<|", "< |")


class NameScorer:
    """Scores names with a causal language model; `threads` is the number of torch's threads."""

    def __init__(self, model: Any, tokenizer: Any, threads: int | None = None) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._threads = threads
        # One question at a time, because more would only compete for the same cores.
        self._scoring = Lock()

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        threads: int | None = None,
    ) -> Self:
        """Load the model in `folder`. Raises InputError for a folder that does not load."""
        device = choose_device(device)
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, **SAFELY)
            with quiet_loading():
                model = AutoModelForCausalLM.from_pretrained(
                    folder, dtype=choose_dtype(dtype, device), **SAFE_WEIGHTS
                )
        except LOAD_ERRORS as error:
            raise unloadable(folder, "a causal language model", error) from error
        return cls(model.to(device), tokenizer, threads)

    def score(
        self, question: str, sentences: Sequence[str], names: Sequence[str]
    ) -> NDArray[np.float32]:
        """Return the mean log-probability of each name's tokens, of shape (names,).

        It is the natural logarithm. The mean does not favour short names, as the sum does.
        """
        if not names:
            return np.zeros(0, np.float32)
        with self._scoring, torch.inference_mode():
            if self._threads:
                torch.set_num_threads(self._threads)
            return self._score(self._ids(naming_prompt(question, sentences)), names)

    def _ids(self, text: str) -> torch.Tensor:
        ids = self._tokenizer(text, add_special_tokens=False).input_ids
        return torch.tensor(ids, device=self._model.device)

    def _score(self, prompt: torch.Tensor, names: Sequence[str]) -> NDArray[np.float32]:
        read = self._model(prompt[None], use_cache=True, logits_to_keep=1)
        # In place: one row of the cache for each name.
        read.past_key_values.batch_repeat_interleave(len(names))
        rows = [self._ids(name + END) for name in names]
        tokens = pad_sequence(rows, batch_first=True)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        seen = torch.ones(len(rows), len(prompt), dtype=mask.dtype, device=mask.device)
        later = self._model(
            tokens,
            past_key_values=read.past_key_values,
            attention_mask=torch.cat([seen, mask], 1),
        )
        first = read.logits[:, -1:].expand(len(rows), -1, -1)
        logits = torch.cat([first, later.logits[:, :-1]], 1).float()
        found = logits.log_softmax(-1).gather(2, tokens[..., None])[..., 0]
        return ((found * mask).sum(1) / mask.sum(1)).cpu().numpy().astype(np.float32)
