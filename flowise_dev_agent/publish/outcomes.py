"""Results of a write, and the errors of one that fails."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from flowise_dev_agent.errors import (
    AgentError,
    HashMismatchError,
    StaleBaseError,
    ValidationRequiredError,
    WriteFailedError,
)
from flowise_dev_agent.patch import GraphIR, diff, payload_sha256
from flowise_dev_agent.persistence.intents import WriteIntent
from flowise_dev_agent.schemas.change import Conflict, Difference
from flowise_dev_agent.texts import sentences, text


@dataclass(frozen=True)
class Base:
    """State of a flow when it was last read: the hash of its `flowData` and Flowise's `updatedDate`."""

    sha256: str
    updated_date: str


@dataclass(frozen=True)
class Written:
    """A write as read back from the server.

    `adopted`: found there after a lost answer, not sent again. `unchanged`: the flow held it already, nothing was sent.
    """

    chatflow_id: str
    name: str
    sha256: str
    updated_date: str
    adopted: bool = False
    unchanged: bool = False

    @property
    def base(self) -> Base:
        return Base(sha256=self.sha256, updated_date=self.updated_date)


@dataclass(frozen=True)
class Stale:
    """The flow on the server is no longer the base that the change was made for.

    Nothing was written; or, with a `conflict`, it was, and someone else saved over it before it was read back.
    """

    chatflow_id: str
    found: Base
    flow_data: str = field(repr=False)
    conflict: Conflict | None = None


@dataclass
class WriteAttempt:
    """Progress of a write while it is made: whether anything has reached the server."""

    written: Literal["no", "unknown", "yes"]


def stale_base(name: str, stale: Stale, *, undone: str = "written") -> StaleBaseError:
    """The error for a change that nobody can be asked about."""
    details: dict[str, Any] = {"chatflow_id": stale.chatflow_id, "written": "no"}
    if stale.conflict is None:
        return StaleBaseError(
            text("error.changed_meanwhile", name=name, undone=undone),
            hint=text("error.look_and_ask_again"),
            details=details,
        )
    return StaleBaseError(
        text("error.saved_by_others", name=name, undone=undone),
        hint=text("error.compare_versions"),
        details=details | {"written": "yes", "conflict": stale.conflict.model_dump(mode="json")},
    )


_STATEMENTS: Mapping[str, str] = {
    "no": "error.written_no",
    "unknown": "error.written_unknown",
    "yes": "error.written_yes",
}


@contextmanager
def stated(intent: WriteIntent, *, lost: bool = False) -> Generator[WriteAttempt]:
    """Around a write: an error that ends it says what is known of it. `lost`: an earlier try has an unknown outcome."""
    attempt = WriteAttempt("unknown" if lost or not intent.is_new else "no")
    try:
        yield attempt
    except AgentError as error:
        error.details["written"] = attempt.written
        if not isinstance(error, WriteFailedError):
            error.message = sentences(error.message, text(_STATEMENTS[attempt.written]))
            if attempt.written != "no":
                error.hint = text("error.try_again_safe")
        raise


_MOST_ENTRIES = 100


_LONGEST_TEXT = 6_000


def changes(before: GraphIR, after: GraphIR) -> Difference:
    """At most 100 entries a list and 6 000 characters of text; `summary` counts all."""
    found = diff(before, after)
    return Difference(
        summary=found.summary,
        text=found.text if len(found.text) <= _LONGEST_TEXT else f"{found.text[: _LONGEST_TEXT - 1]}…",
        added=list(found.added[:_MOST_ENTRIES]),
        removed=list(found.removed[:_MOST_ENTRIES]),
        changed=list(found.changed[:_MOST_ENTRIES]),
        connected=list(found.connected[:_MOST_ENTRIES]),
        disconnected=list(found.disconnected[:_MOST_ENTRIES]),
        moved=list(found.moved[:_MOST_ENTRIES]),
    )


def authorize(flow_data: str, validated_sha256: str | None) -> str:
    """Return the SHA-256 of `flow_data` if validation has passed exactly these bytes.

    Raises:
        ValidationRequiredError: nothing is validated, or the authorisation was spent.
        HashMismatchError: other bytes were validated.
    """
    if not validated_sha256:
        raise ValidationRequiredError(
            text("error.not_validated"),
            hint=text("error.not_validated_hint"),
        )
    actual = payload_sha256(flow_data)
    if actual != validated_sha256:
        raise HashMismatchError(
            text("error.other_than_validated"),
            hint=text("error.other_than_validated_hint"),
            details={"validated": validated_sha256, "offered": actual},
        )
    return actual
