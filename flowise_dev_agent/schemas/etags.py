"""Entity tags (RFC 9110): which state of something a client has read, and whether it is still that."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final, Self
from uuid import UUID

from flowise_dev_agent.errors import PreconditionFailedError

#: What a view says of its field `etag`.
ETAG: Final = "Entity tag of this state. A request with it as `If-Match` changes no other state."


def etag_of(*parts: object) -> str:
    """The strong tag, with its quotes, of a state that these parts make up."""
    return f'"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"'


def session_etag(session_id: UUID, version: str | None) -> str:
    """The tag of a session whose row has this version."""
    return etag_of(str(session_id), version)


@dataclass(frozen=True)
class Expected:
    """The states that a change may be made of, by their tags; None: any that exists (`If-Match: *`)."""

    tags: frozenset[str] | None

    @classmethod
    def read(cls, if_match: str) -> Self:
        """What a header says. A weak tag is that of no state, and so is what is not a tag."""
        return cls(None if if_match == "*" else frozenset(re.findall(r'(?:W/)?"[^"]*"', if_match)))

    def check(self, current: str, **now: Any) -> None:
        """Raise PreconditionFailedError for another state; `now` says something of it beside its tag."""
        if self.tags is not None and current not in self.tags:
            raise changed_meanwhile(current, **now)


def changed_meanwhile(current: str, **now: Any) -> PreconditionFailedError:
    """What is raised when the state is another than the one that a client has read."""
    return PreconditionFailedError(
        "This has changed since you read it. Nothing was done.",
        hint="Read it again, and send the request with its new ETag, in quotes, if it is still what you want.",
        details={"etag": current, **now},
    )
