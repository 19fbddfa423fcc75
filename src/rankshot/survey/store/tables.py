"""The tables of a survey, as the newest schema has them (`migrations` makes them)."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()

SURVEY = Table(
    "survey",
    METADATA,
    Column("version", Integer, nullable=False),
    # Keys the hashes of participants' ids, their links and their codes.
    Column("secret", Text, nullable=False),
)

QUESTION = Table(
    "question",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("target", Text, nullable=False),
    Column("items", Text, nullable=False),
    Column("first", Text, nullable=False),
)

PARTICIPANT = Table(
    "participant",
    METADATA,
    Column("rater", Text, primary_key=True),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("finished_at", Double),
    # Mechanical Turk's: where to hand in, at the end.
    Column("turk_assignment", Text),
    Column("turk_host", Text),
)

ASSIGNMENT = Table(
    "assignment",
    METADATA,
    Column("rater", Text, ForeignKey("participant.rater"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("question", Text, ForeignKey("question.key"), nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("shown", Text, nullable=False),
    Column("shown_at", Double),
    # A list of items, best first, as JSON; [] is "cannot say".
    Column("answer", Text),
    Column("answered_at", Double),
    # Nobody is asked the same question twice, except as a planned repeat.
    UniqueConstraint("rater", "question", "repeat"),
    Index("assignment_of_question", "question"),
)
