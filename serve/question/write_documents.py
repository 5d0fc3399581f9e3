"""Pseudo-documents of many questions, kept as JSON lines for `citeray train cross-encoder`."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from cluster.errors import InputError, LLMError
from cluster.storage.disk_faults import naming_disk_faults
from serve.graph.watch_stages import StageWatch
from serve.llm.language_model import ChatModel
from serve.llm.watched_model import ModelLimits, WatchedModel
from serve.question.rewrite_question import write_pseudo_documents

AT_ONCE = 8
# How each line begins.
_BEGIN = b'{"id": '


async def write_documents(
    questions: Mapping[str, str],
    have: Mapping[str, int],
    model: ChatModel,
    *,
    name: str,
    count: int,
    deadline_s: float,
    file: Path,
    tell: Callable[[int], None],
) -> None:
    """Append to `file` what brings each of `questions` (by id) to `count` documents.

    `have` counts those in the file by the same model, `name`; `tell` gets the number of questions
    done. Raises LLMError where any question is left without, and at once where none of AT_ONCE got
    a document.
    """
    wanting = [known for known in questions if have.get(known, 0) < count]
    left = len(wanting)
    for first in range(0, len(wanting), AT_ONCE):
        known = wanting[first : first + AT_ONCE]
        asked = (_documents(questions[each], model, count, deadline_s) for each in known)
        written = await asyncio.gather(*asked)
        _append(file, name, {k: w[have.get(k, 0) :] for k, w in zip(known, written, strict=True)})
        left -= sum(len(each) == count for each in written)
        tell(first + len(known))
        if not any(written):
            break
    if left:
        raise LLMError(
            f"llm: no usable pseudo-documents for {left} of {len(wanting)} questions; the others "
            f"are in {file}: check llm.url and run the same command again"
        )


async def _documents(question: str, model: ChatModel, count: int, deadline_s: float) -> list[str]:
    watched = WatchedModel(model, StageWatch(math.inf), ModelLimits(deadline_s))
    return await write_pseudo_documents(question, [watched] * count)


def _append(file: Path, name: str, written: Mapping[str, list[str]]) -> None:
    lines = (
        json.dumps({"id": known, "text": text, "model": name}, ensure_ascii=False) + "\n"
        for known, texts in written.items()
        for text in texts
    )
    with naming_disk_faults(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            stream.writelines(lines)


def mend_last_line(file: Path) -> None:
    """Remove the last line of `file` where an interruption cut it short, or end it where whole.

    Raises InputError, and leaves the file as it is, where that is no line of `write_documents`:
    then the file is something else.
    """
    if not file.is_file():
        return
    content = file.read_bytes()
    whole = content.rfind(b"\n") + 1
    end = content[whole:]
    if not end:
        return
    if end[: len(_BEGIN)] != _BEGIN[: len(end)]:
        raise InputError(
            f"{file}: not a file of pseudo-documents (its last line is none); name another as --out"
        )
    with naming_disk_faults(file):
        if _is_json(end):
            with file.open("ab") as stream:
                stream.write(b"\n")
        else:
            os.truncate(file, whole)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
