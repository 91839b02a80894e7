"""Entity tags (RFC 9110), which detect that a client's copy of a state is outdated."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final, Self
from uuid import UUID

from flowise_dev_agent.errors import PreconditionFailedError
from flowise_dev_agent.texts import text

#: Description of the field `etag` of views.
ETAG: Final = "Entity tag of this state. A request with it as `If-Match` changes no other state."


def etag_of(*parts: object) -> str:
    """Make a strong tag, in quotes, from the parts of a state."""
    return f'"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"'


def session_etag(session_id: UUID, version: str | None) -> str:
    """Make the tag of a session from the version of its row."""
    return etag_of(str(session_id), version)


@dataclass(frozen=True)
class Expected:
    """Tags that a client accepts as the current state; None: any existing state (`If-Match: *`)."""

    tags: frozenset[str] | None

    @classmethod
    def read(cls, if_match: str) -> Self:
        """Parse an `If-Match` header. Weak or malformed tags match no state."""
        return cls(None if if_match == "*" else frozenset(re.findall(r'(?:W/)?"[^"]*"', if_match)))

    def check(self, current: str, **now: Any) -> None:
        """Raise PreconditionFailedError if `current` is not an accepted tag; `now` is added to its details."""
        if self.tags is not None and current not in self.tags:
            raise changed_meanwhile(current, **now)


def changed_meanwhile(current: str, **now: Any) -> PreconditionFailedError:
    """Error for a change of a state that has changed since the client read it."""
    return PreconditionFailedError(
        text("error.changed_since_read"),
        hint=text("error.send_new_etag"),
        details={"etag": current, **now},
    )
