"""Open the stores of saved answers, feedback and questions, which share one database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.settings.saved_settings import SavedSettings
from cluster.settings.settings import Settings
from cluster.settings.used_models import used_models
from serve.saved.database import Database
from serve.saved.feedback import FeedbackStore
from serve.saved.recent_answers import RecentAnswers
from serve.saved.stored_answers import AnswerStore
from serve.saved.watches.deliveries import DeliveryStore
from serve.saved.watches.watch_store import WatchStore


@dataclass(frozen=True, slots=True)
class Saved:
    """Stores of one database, and the recent answers that are not stored.

    `models` maps each use of a model to the current model's name.
    """

    settings: SavedSettings
    models: Mapping[str, str]
    database: Database
    answers: AnswerStore
    recent: RecentAnswers
    feedback: FeedbackStore
    watches: WatchStore
    deliveries: DeliveryStore


def open_saved(settings: Settings) -> Saved | None:
    """Return the configured stores, or None if `serve.saved.url` is empty.

    The database is opened at its first use.
    """
    saved = settings.serve.saved
    if not saved.url:
        return None
    database = Database(saved.url)
    return Saved(
        saved,
        model_names(settings),
        database,
        AnswerStore(database, saved.most_answers, saved.keep_days),
        RecentAnswers(),
        FeedbackStore(database),
        WatchStore(database, saved.most_watches),
        DeliveryStore(database),
    )


def model_names(settings: Settings) -> dict[str, str]:
    """Return the names of the models that contribute to answers, by use.

    A model with a URL has the name under which its endpoint serves it.
    """
    names = used_models(settings)
    if settings.llm.kind == "url":
        names["llm"] = settings.llm.model_id
    for role, chosen in settings.models.roles().items():
        names.setdefault(role, chosen.model_id)
    names.pop("judge", None)
    return names
