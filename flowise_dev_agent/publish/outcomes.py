"""Results of a write, and the errors of one that fails."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from flowise_dev_agent.contracts.change import Conflict
from flowise_dev_agent.errors import AgentError, StaleBaseError, WriteFailedError
from flowise_dev_agent.persistence.intents import WriteIntent


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
            f"'{name}' was changed on Flowise meanwhile; nothing was {undone}.",
            hint="Look at it in Flowise and ask again.",
            details=details,
        )
    return StaleBaseError(
        f"'{name}' was saved by someone else right after it was {undone}, and holds their text.",
        hint="Both texts are versions of this session: compare them and roll back to the right one.",
        details=details | {"written": "yes", "conflict": stale.conflict.model_dump(mode="json")},
    )


_STATEMENTS: Mapping[str, str] = {
    "no": "Nothing was changed on Flowise.",
    "unknown": "It is not known whether Flowise did it.",
    "yes": "Flowise did it, but it could not be read back.",
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
            error.message = f"{error.message} {_STATEMENTS[attempt.written]}"
            if attempt.written != "no":
                error.hint = "Try again: Flowise is looked at first, and nothing is written twice."
        raise
