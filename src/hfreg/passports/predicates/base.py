"""What the predicates share. Field names are lowerCamelCase; unknown fields are ignored, as in-toto's rules ask."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from hfreg.digests import is_digest


class PredicateModel(BaseModel):
    """A part of a predicate."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        alias_generator=to_camel,
        populate_by_name=True,
        ser_json_inf_nan="constants",
    )


_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def _check_timestamp(text: str) -> str:
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError("not a UTC time of the form 2026-01-31T12:00:00Z")
    datetime.fromisoformat(text)
    return text


def _check_digest(text: str) -> str:
    if not is_digest(text):
        raise ValueError("not a digest of the form sha256:<64 hexadecimal digits>")
    return text


Timestamp = Annotated[
    str,
    AfterValidator(_check_timestamp),
    Field(json_schema_extra={"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"}),
]
"""A UTC time, RFC 3339, whole seconds, with Z."""
Digest = Annotated[str, AfterValidator(_check_digest), Field(json_schema_extra={"pattern": "^sha256:[0-9a-f]{64}$"})]
Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 as hexadecimal digits."""


def format_time(moment: datetime) -> str:
    """An aware time as the predicates write it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
