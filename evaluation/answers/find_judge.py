"""Open the judge of answers: a model at a URL, or the one in the settings, served by Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.errors import InputError, without_credentials
from cluster.settings.settings import Settings
from cluster.settings.stages.llm import RoleSettings

if TYPE_CHECKING:
    from evaluation.answers.judge_answers import Encode
    from serve.llm.language_model import ChatModel

# Value given instead of a URL to use `models.judge` of the settings.
OF_SETTINGS = "settings"
JUDGE_KEY = "CITERAY_JUDGE_API_KEY"
JUDGE_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge. `name` identifies the model and its address; `encode` embeds questions."""

    name: str
    model: ChatModel
    encode: Encode


def check_judge(where: str, model: str, settings: Settings) -> None:
    """Raise InputError if `where` and `model` do not name a judge."""
    if where == OF_SETTINGS:
        if settings.models.judge is None:
            raise InputError(
                "--judge settings: they have no models.judge; name one there, or a URL and "
                "--judge-model"
            )
    elif not model:
        raise InputError("--judge needs --judge-model, the judge's name at its URL")


@contextmanager
def open_judge(where: str, model: str, settings: Settings) -> Iterator[Judge]:
    """Open the judge `model` at the URL `where`, or that of the settings, with their encoder.

    A model served on this machine runs only within the context. Raises the errors of `check_judge`.
    """
    from cluster.models.adapters import model_folder
    from cluster.models.encoder import Encoder
    from serve.client.run_graph import served_models
    from serve.llm.language_model import OpenAIChatModel
    from serve.llm.model_roles import in_place_of_the_writer

    check_judge(where, model, settings)
    encoder = Encoder(model_folder(settings.encoder), batch_size=settings.encoder.batch_size)
    role = settings.models.judge if where == OF_SETTINGS else None
    if role is None:
        chat = OpenAIChatModel(where, model, JUDGE_KEY, JUDGE_TIMEOUT_S)
        yield Judge(f"{model} at {without_credentials(where)}", chat, encoder.encode)
    elif role.kind == "url":
        yield Judge(_name(role), _at_url(role), encoder.encode)
    else:
        with served_models(in_place_of_the_writer(settings, role)) as models:
            assert models.writer is not None
            yield Judge(_name(role), models.writer, encoder.encode)


def _name(role: RoleSettings) -> str:
    return f"{role.model_id} at {without_credentials(role.url or role.model)}"


def _at_url(role: RoleSettings) -> ChatModel:
    from serve.llm.language_model import OpenAIChatModel

    return OpenAIChatModel(
        role.url, role.model_id, role.api_key_env, JUDGE_TIMEOUT_S, completion=role.completion
    )
