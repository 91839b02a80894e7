"""The files that go with a requirement, as planning and the ops need them."""

from collections.abc import Sequence
from typing import Protocol

from flowise_dev_agent.schemas.attachments import AttachmentFacts


class SessionFiles(Protocol):
    """The files that go with the session's requirement."""

    async def facts(self) -> Sequence[AttachmentFacts]:
        """What is known of each, in the order in which they were handed over."""
        ...

    async def content(self, name: str) -> tuple[str, bytes, str] | None:
        """(media type, bytes, text) of one; None when there is none of this name."""
        ...
