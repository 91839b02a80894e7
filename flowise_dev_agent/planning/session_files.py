"""Files attached to a requirement, as planning and the ops use them."""

from collections.abc import Sequence
from typing import Protocol

from flowise_dev_agent.schemas.attachments import AttachmentFacts


class SessionFiles(Protocol):
    """Files attached to the session's requirement."""

    async def facts(self) -> Sequence[AttachmentFacts]:
        """Facts about each file, in upload order."""
        ...

    async def content(self, name: str) -> tuple[str, bytes, str] | None:
        """(media type, bytes, text) of a file; None if no file has this name."""
        ...
