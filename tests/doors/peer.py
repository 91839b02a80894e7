"""A provider or model server as it stands on the wire: it accepts, refuses and answers as `peers/` says."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from flowise_dev_agent.devkit.serving import BackgroundServer
from flowise_dev_agent.devkit.standin.protocol import Body, RecordedRequest, Reply
from tests.doors.model import Script, is_look_up, phase_of

KEY = "sk-doors-0123456789"

#: What a request wants: look-ups, an answer of a given shape, both at once, or plain text.
Kind = Literal["look-up", "answer", "both", "text"]


@dataclass(frozen=True)
class Refusal:
    """An error response; `code`, `type` and `param` stand where a door's error body has room for them."""

    message: str
    status: int = 400
    code: str | None = None
    type: str = "invalid_request_error"
    param: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


#: Refuses a request, or lets it pass.
Rule = Callable[[RecordedRequest], Refusal | None]


class Wire(Protocol):
    """A provider's protocol: a module of `wires/`, or of the stand-in."""

    def parse_chat(self, path: str, body: Body, api_key: str) -> RecordedRequest: ...
    def render_chat(self, request: RecordedRequest, reply: Reply) -> Body: ...
    def stream_chat(self, request: RecordedRequest, reply: Reply) -> Iterator[str]: ...


def _never(_: RecordedRequest) -> bool:
    return False


def _has_schema(request: RecordedRequest) -> bool:
    return bool(request.json_schema) or any(not is_look_up(tool.name) for tool in request.tools)


@dataclass(frozen=True)
class Door:
    """One way to a model. `settings` are the variables by which a service goes through it to an address."""

    name: str
    model: str
    wire: Any
    #: The end of the path of its requests.
    path: str
    settings: Callable[[str], dict[str, str]]
    error: Callable[[Refusal], Any]
    #: Variables of the process, for an SDK that looks there.
    credentials: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[Rule] = ()
    #: Its model reasons before each answer, and the door sends that along.
    thinks: bool = False
    #: Changes an answer of chat completions, or a chunk of one, to the fields that this door has.
    dress: Callable[[Body], None] = lambda answer: None
    #: It leaves the tools of such a request out, without a word.
    ignores_tools: Callable[[RecordedRequest], bool] = _never
    #: The schema of such a request binds what the model writes.
    holds: Callable[[RecordedRequest], bool] = _has_schema
    #: Its grammar forbids the properties that an object of a schema does not name.
    closes_objects: bool = False
    #: Tokens of a prompt that the model reads at most; the rest is cut without a word.
    reads: int | None = None
    #: Further routes, by the end of their path.
    pages: Mapping[str, Callable[[Body], Any]] = field(default_factory=dict)
    frames: Callable[[Iterator[str]], bytes] | None = None
    #: Another API of the provider, at the same address.
    beside: "Door | None" = None


@dataclass(frozen=True)
class Exchange:
    """One request and what became of it."""

    asked: RecordedRequest
    phase: str
    refusal: Refusal | None = None
    #: The rule that refused it.
    rule: str = ""
    reply: Reply | None = None
    #: The schema bound the answer.
    held: bool = False
    #: The prompt was cut.
    cut: bool = False

    @property
    def kind(self) -> Kind:
        """Kind of the request."""
        looks, answers = bool(self.look_ups), _has_schema(self.asked) or self.asked.json_schema is not None
        if looks:
            return "both" if answers else "look-up"
        return "answer" if answers else "text"

    @property
    def look_ups(self) -> list[str]:
        """Tools that may be called to look something up."""
        return [tool.name for tool in self.asked.tools if is_look_up(tool.name)] if may_call(self.asked) else []

    @property
    def called(self) -> bool:
        """True if the model looked something up."""
        return self.reply is not None and any(is_look_up(call.name) for call in self.reply.tool_calls)


def may_call(request: RecordedRequest) -> bool:
    """True unless the request forbids calls, as `tool_choice: none` does."""
    choice = request.body.get("tool_choice")
    return choice != "none" and not (isinstance(choice, dict) and choice.get("type") == "none")


class Peer(BackgroundServer):
    """A door on `http://127.0.0.1:port`, behind which `script` answers; `log` holds what came in, oldest first."""

    def __init__(self, door: Door, script: Script) -> None:
        super().__init__(f"peer of {door.name}")
        self.door = door
        self.log: list[Exchange] = []
        self._script = script

    @property
    def refusals(self) -> list[Exchange]:
        """The requests that were refused."""
        return [exchange for exchange in self.log if exchange.refusal is not None]

    def app(self) -> Starlette:
        """App with all paths in one handler."""
        return Starlette(routes=[Route("/{path:path}", self._handle, methods=["GET", "POST"])])

    async def _handle(self, http: Request) -> Response:
        path = http.url.path
        body: Any = json.loads(await http.body() or b"{}")
        for end, page in self.door.pages.items():
            if path.endswith(end):
                return JSONResponse(page(body))
        doors = (door for door in (self.door, self.door.beside) if door is not None and re.search(door.path, path))
        door = next(doors, None)
        if http.method != "POST" or door is None:
            return JSONResponse(self.door.error(Refusal(f"Unknown route {path}", 404)), 404)
        found = re.search(door.path, path)
        named = found.groupdict() if found else {}
        if "model" in named:
            # Some doors name the model in the path, and put streaming there.
            body = {"model": unquote(named["model"]), "stream": "stream" in (named.get("way") or "").lower()} | body
        return self._respond(door, door.wire.parse_chat(path, body, _key(http)))

    def _respond(self, door: Door, request: RecordedRequest) -> Response:
        phase = phase_of(request)
        for rule in door.rules:
            if refusal := rule(request):
                self.log.append(Exchange(request, phase, refusal, rule.__name__))
                return JSONResponse(door.error(refusal), refusal.status)
        tools = may_call(request) and not door.ignores_tools(request)
        held = door.holds(request)
        reply = self._script.reply(request, phase, tools=tools, held=held, closed=door.closes_objects)
        if door.thinks:
            reply = Reply(**{**vars(reply), "thinking": "The catalogue will tell."})
        cut = door.reads is not None and prompt_tokens(request) > door.reads
        if cut:
            reply = Reply(**{**vars(reply), "tokens": (door.reads, 50)})
        self.log.append(Exchange(request, phase, None, "", reply, held, cut))
        if not request.stream:
            return JSONResponse(_dressed(door.wire.render_chat(request, reply), door.dress))
        events = door.wire.stream_chat(request, reply)
        if door.frames:
            return Response(door.frames(events), media_type="application/vnd.amazon.eventstream")
        return StreamingResponse(_paced(events, door.dress, reply), media_type="text/event-stream")


async def _paced(events: Iterator[str], dress: Callable[[Body], None], reply: Reply) -> AsyncIterator[str]:
    for event in events:
        head, mark, data = event.partition("data: {")
        if mark:
            event = f"{head}data: {json.dumps(_dressed(json.loads('{' + data), dress), ensure_ascii=False)}\n\n"
        yield event
        if reply.gate:
            await asyncio.to_thread(reply.gate.wait, 30)


def _dressed(body: Body, dress: Callable[[Body], None]) -> Body:
    dress(body)
    return body


def messages_of(answer: Body) -> list[Body]:
    """The messages of an answer of chat completions, or the deltas of a chunk."""
    return [choice.get("message") or choice.get("delta") or {} for choice in answer.get("choices") or ()]


def _key(http: Request) -> str:
    headers = http.headers
    for name in ("x-api-key", "api-key", "x-goog-api-key", "authorization"):
        if value := headers.get(name):
            return value.removeprefix("Bearer ")
    return ""


def prompt_tokens(request: RecordedRequest) -> int:
    """Tokens of a request, at four characters each."""
    left_out = ("max_tokens", "stream", "model")
    return len(json.dumps({name: value for name, value in request.body.items() if name not in left_out})) // 4
