"""Database tables of saved answers, feedback and questions.

Times are in seconds since 1970; records are JSON.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)


class Words(TypeDecorator[str]):
    """Text of a user without NUL, which Postgres cannot store; the JSON records keep NUL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace each NUL by U+FFFD."""
        return value and value.replace("\0", "\ufffd")


SCHEMA = "1"
METADATA = MetaData()

FACTS = Table(
    "facts",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("value", String(64), nullable=False),
)

ANSWERS = Table(
    "answers",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("created", Float, nullable=False),
    Column("question", Words, nullable=False),
    Column("verdict", String(32), nullable=False),
    Column("system", Text, nullable=False),
    Column("index_version", String(64), nullable=False),
    # Request, answer, preset settings and models.
    Column("record", JSON, nullable=False),
    Index("answers_by_owner", "owner", "created", "id"),
    Index("answers_by_age", "created"),
)

FEEDBACK = Table(
    "feedback",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("answer_id", String(32), ForeignKey("answers.id", ondelete="CASCADE"), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("created", Float, nullable=False),
    # Digest of the opinion, so that the same feedback sent twice is stored once.
    Column("digest", String(64), nullable=False),
    Column("record", JSON, nullable=False),
    UniqueConstraint("answer_id", "owner", "digest"),
    Index("feedback_by_age", "created", "id"),
)

# Feedback without a row here has not been reviewed.
REVIEWS = Table(
    "reviews",
    METADATA,
    Column(
        "feedback_id", String(32), ForeignKey("feedback.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("state", String(16), nullable=False),
    # Name of the reviewer's API key, "" if there is none.
    Column("reviewer", String(64), nullable=False),
    Column("reviewed", Float, nullable=False),
)

WATCHES = Table(
    "watches",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("owner", String(64), nullable=False),
    # Digest of the request and the webhook, so that the same question is saved once.
    Column("digest", String(64), nullable=False),
    Column("created", Float, nullable=False),
    Column("question", Words, nullable=False),
    Column("request", JSON, nullable=False),
    Column("webhook", Text, nullable=False),
    # Time and index version of the last check; 0 and "" before the first.
    Column("checked", Float, nullable=False),
    Column("version", String(64), nullable=False),
    # Number of failures in a row, the last error, and the earliest time of the next check.
    Column("failures", Integer, nullable=False),
    Column("error", Text, nullable=False),
    Column("not_before", Float, nullable=False),
    Column("answer", JSON),
    Column("sources", JSON, nullable=False),
    UniqueConstraint("owner", "digest"),
    Index("watches_by_check", "checked", "id"),
)

CHECKS = Table(
    "checks",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("watch_id", String(32), ForeignKey("watches.id", ondelete="CASCADE"), nullable=False),
    Column("version", String(64), nullable=False),
    Column("last_source", Text, nullable=False),
    Column("created", Float, nullable=False),
    # Whether the feed and the webhook report this check.
    Column("notable", Boolean, nullable=False),
    Column("diff", JSON),
    # Only one check of a question per index version, even if several processes try.
    UniqueConstraint("watch_id", "version"),
    Index("checks_by_watch", "watch_id", "created"),
)

DELIVERIES = Table(
    "deliveries",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("watch_id", String(32), ForeignKey("watches.id", ondelete="CASCADE"), nullable=False),
    Column("url", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("due", Float, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("error", Text, nullable=False),
    Index("deliveries_by_due", "state", "due"),
    Index("deliveries_by_watch", "watch_id"),
)

LEASES = Table(
    "leases",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("ends", Float, nullable=False),
)
