"""Settings of stored answers, feedback and saved questions."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from cluster.settings.fields import Positive, Strict


def _database_url(value: str) -> str:
    """Check a database URL. Raises ValueError if it is unsupported or contains a password."""
    if not value:
        return value
    scheme, _, rest = value.partition("://")
    kind = scheme.partition("+")[0]
    if kind not in ("sqlite", "postgresql") or not rest.strip("/"):
        raise ValueError(
            "use sqlite:///FOLDER/FILE or postgresql://USER@HOST/DATABASE, or leave it empty"
        )
    if kind == "sqlite" and not rest.startswith("/"):
        raise ValueError(
            "sqlite: use three slashes before a relative path, four before an absolute one"
        )
    if urlsplit(value).password is not None:
        raise ValueError("contains a password; set it in the environment variable PGPASSWORD")
    return value


class SavedSettings(Strict):
    """Stored answers, feedback and saved questions.

    They are stored in the database at `url`: a SQLite file, for gateways on one machine, or
    Postgres. Answers are stored on request ("asked"), always, or never. Each key may store
    `most_answers` answers, which are deleted after `keep_days`, and have `most_watches` saved
    questions. After a new version of the index, the saved questions are asked again at a rate of
    `checks_per_minute`. The keys named in `reviewers` see and review the feedback of all keys;
    without API keys, everybody does.

    Webhooks are sent only to `webhook_hosts` (`host` or `host:port`), and only over HTTPS; with
    `webhook_private`, also to private addresses and over HTTP. They are signed with the secret in
    the environment variable `webhook_secret_env`.
    """

    url: Annotated[str, AfterValidator(_database_url)]
    answers: Literal["asked", "always", "never"]
    keep_days: Annotated[float, Field(gt=0)]
    most_answers: Positive
    most_watches: Positive
    checks_per_minute: Annotated[float, Field(gt=0, le=6000)]
    reviewers: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")], ...]
    webhook_hosts: tuple[str, ...]
    webhook_private: bool
    webhook_secret_env: str
