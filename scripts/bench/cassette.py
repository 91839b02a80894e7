"""Records what a model answers in the cases of a benchmark, and plays it back without a key.

A cassette is a folder with a JSON file per case: its requirement and the answers in the order of the calls, each with
the phase, the number within the phase, and digests of the prompt. It holds no prompt, no header and no key. Answers are
played back in the dialect of the request, so that the provider's own SDK reads them.
"""

import asyncio
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx2
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin import anthropic, openai
from flowise_dev_agent.devkit.standin.protocol import Body, RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.base import Contract, JsonObject

#: Where the answers come from when they are recorded.
PROVIDERS: Mapping[str, str] = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
#: Headers that a provider needs; the others belong to this connection.
_PASSED_ON: Final = ("authorization", "x-api-key", "anthropic-version", "anthropic-beta", "content-type", "accept")
#: The heading that each phase has in its system prompt.
_PHASE: Final = re.compile(r"^# (Classify|Plan|Question|Patch|Step|Judge)$", re.MULTILINE)
#: Findings with which an answer goes back.
_HANDED_BACK: Final = re.compile(r"(?:Your answer could not be used:|<findings_on_them>)\n(.{1,4000})", re.DOTALL)
_SHOWN: Final = 300
#: Ids that differ from run to run.
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class RecordedCall(Contract):
    """A call's name and arguments."""

    name: str
    arguments: JsonObject = Field(default_factory=dict)


class RecordedAnswer(Contract):
    """One answer of a model. `number` counts the calls of a phase in a case from 1."""

    phase: str
    number: int
    system_sha256: str = Field(description="Of the stable part of the prompt.")
    session_sha256: str = Field(description="Of the messages, without ids that differ from run to run.")
    text: str = ""
    tool_calls: list[RecordedCall] = Field(default_factory=list)
    stop_reason: str | None = None

    def reply(self) -> Reply:
        """The answer as the stand-in's dialects render it."""
        calls = tuple(StandInToolCall(call.name, call.arguments) for call in self.tool_calls)
        return Reply(self.text, calls, stop_reason=self.stop_reason)


class RecordedCase(Contract):
    """The file of a case."""

    case: str
    requirement: str
    answers: list[RecordedAnswer] = Field(default_factory=list)


class Cassette(BackgroundServer):
    """A server between the SDKs and the providers.

    A request belongs to the case whose requirement it holds. It gets the answer that was recorded for the same
    prompt, else the next of its phase or the last, listed in `changed`: the prompt is not what it was when the answer
    was given.
    With `cases` (id -> requirement) what is missing is asked from `upstream` and kept; without them it is a 404.
    """

    def __init__(
        self,
        folder: Path,
        *,
        cases: Mapping[str, str] | None = None,
        upstream: Mapping[str, str] = PROVIDERS,
        timeout_secs: float = 180.0,
    ) -> None:
        super().__init__("cassette")
        self._folder = folder
        self._upstream = upstream
        self._timeout_secs = timeout_secs
        self._recording = cases is not None
        self._lock = threading.Lock()
        kept = [RecordedCase.model_validate_json(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))]
        self._cases = {case.case: case for case in kept}
        for id_, requirement in (cases or {}).items():
            self._cases.setdefault(id_, RecordedCase(case=id_, requirement=requirement))
        self._served: Counter[tuple[str, str]] = Counter()
        self.hits = 0
        self.misses = 0
        #: `case phase number part` of answers to prompts that have changed since, part being `system` or `session`.
        self.changed: list[str] = []
        #: `case phase number: findings` of the calls that hand an answer back to the model.
        self.handed_back: list[str] = []

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
        provider, path = http.path_params["provider"], http.path_params["path"]
        body = await http.json()
        dialect = anthropic if provider == "anthropic" else openai
        request = dialect.parse_chat(f"/{path}", body, "")
        case = self._case_of(request)
        if case is None:
            return _error("The prompt holds the requirement of no case on this cassette.")
        with self._lock:
            answer = self._recorded(case, request)
        if answer is None and self._recording and provider in self._upstream:
            response = await self._ask(http, f"{self._upstream[provider]}/{path}", body)
            if not response.is_success:
                # Failures are not kept: the next run tries again.
                return Response(response.content, response.status_code, media_type="application/json")
            answer = await asyncio.to_thread(self._keep, case, request, response.json())
        if answer is None:
            return _error(f"The cassette has no answer for the case '{case.case}', phase '{phase_of(request)}'.")
        if request.stream:
            return StreamingResponse(dialect.stream_chat(request, answer.reply()), media_type="text/event-stream")
        return JSONResponse(dialect.render_chat(request, answer.reply()))

    def _case_of(self, request: RecordedRequest) -> RecordedCase | None:
        """The case with the longest requirement that the prompt holds."""
        prompt = _plain(request.prompt)
        held = [case for case in self._cases.values() if _plain(masked(case.requirement)) in prompt]
        return max(held, key=lambda case: len(case.requirement), default=None)

    def _recorded(self, case: RecordedCase, request: RecordedRequest) -> RecordedAnswer | None:
        phase, system, session = phase_of(request), _digest(request.system), _session_digest(request)
        of_phase = [answer for answer in case.answers if answer.phase == phase]
        same = next((answer for answer in of_phase if answer.session_sha256 == session), None)
        if same is None and self._recording:
            self.misses += 1
            return None
        later = [one for one in of_phase if one.number > self._served[case.case, phase]]
        # Votes on one prompt share an answer: behind the last one it is given again.
        answer = same or next(iter([*later[:1], *of_phase[-1:]]), None)
        if answer is None:
            self.misses += 1
            return None
        self._served[case.case, phase] = answer.number
        self.hits += 1
        label = f"{case.case} {phase} {answer.number}"
        if found := _HANDED_BACK.search(request.messages[-1].text):
            self.handed_back.append(f"{label}: {' '.join(found[1].split())[:_SHOWN]}")
        if same is None:
            self.changed.append(f"{label} session")
        elif answer.system_sha256 != system:
            self.changed.append(f"{label} system")
        return answer

    async def _ask(self, http: Request, url: str, body: Body) -> httpx2.Response:
        """The provider's answer in one piece, whatever the SDK asked for."""
        headers = {name: http.headers[name] for name in _PASSED_ON if name in http.headers}
        whole = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
        async with httpx2.AsyncClient(timeout=self._timeout_secs) as client:
            return await client.post(url, json=whole, headers=headers)

    def _keep(self, case: RecordedCase, request: RecordedRequest, body: Body) -> RecordedAnswer:
        dialect = anthropic if request.provider == "anthropic" else openai
        reply = dialect.parse_reply(body)
        phase = phase_of(request)
        with self._lock:
            answer = RecordedAnswer(
                phase=phase,
                number=sum(one.phase == phase for one in case.answers) + 1,
                system_sha256=_digest(request.system),
                session_sha256=_session_digest(request),
                text=masked(reply.text),
                tool_calls=[RecordedCall(name=call.name, arguments=call.arguments) for call in reply.tool_calls],
                stop_reason=reply.stop_reason,
            )
            case.answers.append(answer)
            self._served[case.case, phase] = answer.number
            text = case.model_dump_json(indent=1, exclude_defaults=True)
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / f"{case.case}.json").write_text(f"{text}\n", "utf-8")
        return answer


def phase_of(request: RecordedRequest) -> str:
    """The phase that the system prompt names, in lower case; a question about a flow is answered by the plan phase."""
    found = _PHASE.search(request.system)
    return found[1].lower().replace("question", "plan") if found else "other"


def _session_digest(request: RecordedRequest) -> str:
    said = [
        (message.role, message.text, [(call.name, call.arguments) for call in message.tool_calls])
        for message in request.messages
        if message.role != "system"
    ]
    return _digest(json.dumps(said, sort_keys=True, ensure_ascii=False))


def _digest(text: str) -> str:
    return hashlib.sha256(_UUID.sub("id", text).encode()).hexdigest()


def _plain(text: str) -> str:
    return " ".join(text.split())


def _error(message: str) -> Response:
    return JSONResponse({"error": {"message": message}}, 404)
