"""Records answers of model providers and plays them back, so that runs with a real model repeat without a key.

A cassette is a folder with a JSON file per request, named by the SHA-256 of provider, path and body. It holds status,
content type and body of the answer; no header of the request, so no key, and what looks like one is masked.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.patch.model.secrecy import masked

#: Where the answers come from when they are recorded.
PROVIDERS: Mapping[str, str] = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
_TIMEOUT_SECS = 180.0
#: Headers that a provider needs; the others belong to this connection.
_PASSED_ON = ("authorization", "x-api-key", "anthropic-version", "anthropic-beta", "content-type", "accept")


@dataclass(frozen=True)
class _Recorded:
    """An answer as it is stored."""

    status: int
    content_type: str
    body: str

    def response(self) -> Response:
        return Response(self.body, status_code=self.status, headers={"content-type": self.content_type})


class Cassette(BackgroundServer):
    """A server between the SDKs and the providers. Without `record` an answer that is not on the cassette is a 404.

    `hits` and `misses` count the requests that were answered from the folder and those that were not.
    """

    def __init__(self, folder: Path, *, record: bool = False, upstream: Mapping[str, str] = PROVIDERS) -> None:
        super().__init__("cassette")
        self._folder = folder
        self._record = record
        self._upstream = upstream
        self.hits = 0
        self.misses = 0

    @property
    def environment(self) -> dict[str, str]:
        """The settings that point the engines at this server."""
        return {
            "ANTHROPIC_BASE_URL": f"{self.endpoint}/anthropic",
            "OPENAI_BASE_URL": f"{self.endpoint}/openai/v1",
        }

    def app(self) -> Starlette:
        """All paths in one handler."""
        return Starlette(routes=[Route("/{provider}/{path:path}", self._handle, methods=["POST"])])

    async def _handle(self, http: Request) -> Response:
        provider, path, body = http.path_params["provider"], http.path_params["path"], await http.body()
        file = self._folder / f"{request_key(provider, path, body)}.json"
        if file.is_file():
            self.hits += 1
            return _Recorded(**json.loads(file.read_text("utf-8"))).response()
        self.misses += 1
        if not self._record or provider not in self._upstream:
            return JSONResponse(
                {"error": {"message": f"The cassette has no answer for this request ({file.name})."}}, 404
            )
        return await self._fetch(http, f"{self._upstream[provider]}/{path}", body, file)

    async def _fetch(self, http: Request, url: str, body: bytes, file: Path) -> Response:
        headers = {name: http.headers[name] for name in _PASSED_ON if name in http.headers}
        async with httpx2.AsyncClient(timeout=_TIMEOUT_SECS) as client:
            answer = await client.post(url, content=body, headers=headers)
        recorded = _Recorded(
            status=answer.status_code,
            content_type=answer.headers.get("content-type", "application/json"),
            body=masked(answer.text),
        )
        if answer.is_success:
            # Failures are not kept: the next run tries again.
            await asyncio.to_thread(_keep, file, recorded)
        return recorded.response()


def request_key(provider: str, path: str, body: bytes) -> str:
    """Hex SHA-256; the order of the keys in the body does not matter."""
    try:
        text = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
    except ValueError:
        text = body.decode("utf-8", "replace")
    return hashlib.sha256(f"{provider}\n{path}\n{text}".encode()).hexdigest()


def _keep(file: Path, recorded: _Recorded) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(recorded), ensure_ascii=False, indent=1) + "\n", "utf-8")
