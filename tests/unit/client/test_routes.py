"""The client has a call for every route, with async and without."""

import inspect
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
from pydantic import SecretStr
from pydantic.networks import HttpUrl

from flowise_dev_agent.client import AgentClient, SyncAgentClient
from flowise_dev_agent.patch import PatchOp, SetLabel
from flowise_dev_agent.schemas import (
    chat,
    connections,
    flow_tests,
    flow_writes,
    flows,
    guards,
    keys,
    node_artifacts,
    patterns,
    process_conversation,
    requests,
    shares,
)
from flowise_dev_agent.schemas.credentials import NewCredential

OPENAPI = Path(__file__).resolve().parents[3] / "docs" / "openapi.json"
#: The cookie and the pictures are the browser's.
NOT_FOR_PROGRAMS = {"sign_out", "list_icons"}
OPS: list[PatchOp] = [SetLabel(node_id="a", label="b")]
#: What calls are given, by the name of its type.
BODIES: dict[str, Any] = {
    type(one).__name__: one
    for one in (
        requests.StartSession(requirement="r"),
        requests.ResumeSession(response="yes"),
        process_conversation.ProcessConversation(message="m"),
        flow_writes.ImportFlow(ops=OPS),
        flow_writes.ReadExport(text="{}"),
        flow_writes.ApplyToFlow(ops=OPS),
        flow_writes.PromoteFlow(target="prod"),
        flow_tests.ValidateFlow(flow_data="{}"),
        flows.PreviewFlow(),
        flow_tests.TestFlow(),
        flow_tests.PutTestSet(tests=[]),
        flow_tests.TestMark(good=True),
        guards.GuardSettings(),
        chat.ChatQuestion(question="q"),
        keys.NewKey(name="ci", scopes=["read"]),
        shares.NewShare(subject="flow", id=UUID(int=7)),
        patterns.PatternFile(patterns=[]),
        node_artifacts.NewMemory(text="n"),
        connections.ConnectFlowise(endpoint=HttpUrl("http://flowise")),
        connections.ConnectModel(engine="openai"),
        NewCredential(name="n", type="openAIApi", fields={"openAIApiKey": SecretStr("k")}),
        UUID(int=7),
        7,
        0.0,
        "v1.0",
        b"x",
    )
}


def calls() -> dict[str, Callable[..., Any]]:
    """The public calls of the client, by name."""
    members = inspect.getmembers(
        AgentClient, lambda one: inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one)
    )
    return {name: call for name, call in members if not name.startswith("_") and name != "aclose"}


def operations() -> list[tuple[str, re.Pattern[str], str]]:
    """(method, pattern of its paths, operation id) of each route, those without parameters first."""
    paths: dict[str, dict[str, Any]] = json.loads(OPENAPI.read_text())["paths"]
    return [
        (method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), one["operationId"])
        for path, item in sorted(paths.items(), key=lambda entry: entry[0].count("{"))
        for method, one in item.items()
    ]


async def requested(name: str, call: Callable[..., Any], **more: Any) -> httpx2.Request:
    """The first request that a call sends."""
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(400, json={"code": "seen", "detail": "Seen."})

    needed = [one for one in inspect.signature(call).parameters.values() if one.default is one.empty]
    arguments = [
        BODIES[str(getattr(one.annotation, "__name__", one.annotation))]
        for one in needed
        if one.name != "self" and one.kind is not one.VAR_KEYWORD
    ]
    async with AgentClient("http://agent", transport=httpx2.MockTransport(handler)) as agent:
        with suppress(Exception):
            answer = call(agent, *arguments, **more)
            await (anext(answer) if isinstance(answer, AsyncGenerator) else answer)
    assert seen, f"{name} sends nothing"
    return seen[0]


async def test_every_call_is_for_a_route_and_every_route_has_a_call() -> None:
    sent = {name: await requested(name, call) for name, call in calls().items()}
    called = {name: operation_of(request) for name, request in sent.items()}
    assert [name for name, operation in called.items() if operation is None] == []
    of_one_flow = operation_of(await requested("test_flow", AgentClient.test_flow, chatflow_id="f"))
    assert {one for _, _, one in operations()} - {*called.values(), of_one_flow} == NOT_FOR_PROGRAMS


def operation_of(request: httpx2.Request) -> str | None:
    """The id of the operation that a request is for."""
    fits = (one for method, path, one in operations() if method == request.method and path.fullmatch(request.url.path))
    return next(fits, None)


def test_every_call_is_there_without_async_with_the_same_words() -> None:
    ours, theirs = calls(), vars(SyncAgentClient)
    assert {name for name in theirs if name in ours} == set(ours)
    for name, call in ours.items():
        assert theirs[name].call is call
        assert call.__doc__
        assert theirs[name].__doc__ == call.__doc__
