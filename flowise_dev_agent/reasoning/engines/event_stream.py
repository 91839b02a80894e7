"""Server-sent events of a provider, as they come. The SDKs' own readers take most of the time of a stream."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Final, TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

#: OpenAI's last event.
_DONE: Final = b"[DONE]"
#: So long a server may take to end the response after it; only then the connection can be used again.
_END_SECS: Final = 0.1
_Event = TypeVar("_Event", bound=BaseModel)


async def read_events(response: httpx2.Response, kind: type[_Event]) -> AsyncGenerator[_Event]:
    """The data of each event, whatever its name. The caller closes the response.

    Raises ValueError for what is not of this kind.
    """
    decoder = _Decoder()
    parts = response.aiter_bytes()
    async for part in parts:
        for data in decoder.feed(part):
            if data.startswith(_DONE):
                with suppress(TimeoutError):
                    async with asyncio.timeout(_END_SECS):
                        async for _ in parts:
                            pass
                return
            try:
                event = kind.model_validate_json(data)
            except ValidationError:
                # Python's own reader lets half of a surrogate pair through, as some servers send it.
                event = kind.model_validate(json.loads(data))
            yield event


class _Decoder:
    """Finds the data of events in parts of a stream, cut anywhere."""

    def __init__(self) -> None:
        #: Of a line without an end so far.
        self._begun: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> Iterator[bytes]:
        """The data of the events that end with this part."""
        if b"\n" not in part and b"\r" not in part:
            self._begun.append(part)
            return
        lines = b"".join((*self._begun, part)).splitlines(keepends=True)
        # A line feed may follow a carriage return.
        self._begun = [] if lines[-1].endswith(b"\n") else [lines.pop()]
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif self._data and not line.strip():
                data, self._data = b"\n".join(self._data), []
                if data:
                    yield data
