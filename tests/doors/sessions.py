"""Whole sessions through a door: a new flow and a change, in the real service, on a Flowise of tests."""

import os
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from pydantic import SecretStr

from flowise_dev_agent.errors import InvalidAnswerError
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.settings import DatabaseSettings, FlowiseSettings, ReasoningSettings, load_settings
from tests.chaos.fake_flowise import FakeFlowise
from tests.doors.model import Script
from tests.doors.peer import Door, Exchange, Kind, Peer
from tests.e2e.scripted import CHOSEN, COLDER, REQUIREMENT, change

FLOWISE_KEY: Final = "doors"
_TOLD: Final = re.compile(r"interrupt\.lost_(\w+)")
#: What the models behind the doors say.
SCRIPT: Final = Script({COLDER: change("chatOpenAI_0", "temperature", 0.2), REQUIREMENT: CHOSEN})


@asynccontextmanager
async def service(dsn: str, flowise: FakeFlowise, variables: Mapping[str, str]) -> AsyncGenerator[Runtime]:
    """A service with a worker in this process; its models are where `variables` say."""
    settings = load_settings(
        database=DatabaseSettings(POSTGRES_DSN=SecretStr(dsn)),
        flowise=FlowiseSettings(
            FLOWISE_API_ENDPOINT=f"http://127.0.0.1:{flowise.port}", FLOWISE_API_KEY=SecretStr(FLOWISE_KEY)
        ),
        reasoning=ReasoningSettings(**{"REASONING_MAX_RETRIES": 0, **variables}),
    )
    async with Runtime.open(settings, worker=True) as runtime:
        yield runtime


async def run(
    runtime: Runtime, requirement: str, *, patience: float = 60, told: set[str] | None = None, **request: Any
) -> SessionView:
    """A session that approves the plan and accepts the result; the view at its end, or at an error.

    `told` gets what it says at its questions about features that the model does not take.
    """
    view = await runtime.service.start(StartSession(requirement=requirement, **request))
    for action in ("approve", "accept"):
        view = await runtime.service.wait(view.thread_id, patience)
        if view.interrupt is None:
            return view
        if told is not None:
            told |= {*_TOLD.findall(view.interrupt.model_dump_json())}
        body = ResumeSession(interrupt_id=view.interrupt.id, answer={"action": action})
        try:
            view = await runtime.service.resume(view.thread_id, body)
        except InvalidAnswerError:
            return view
    return await runtime.service.wait(view.thread_id, patience)


@dataclass(frozen=True)
class Passage:
    """Sessions through a door: their views, each by a word, and what the door saw before a restart and after it."""

    door: Door
    views: dict[str, SessionView]
    first: list[Exchange]
    restarted: list[Exchange]
    #: Codes of what the sessions were told that the model does not take.
    told: frozenset[str]


@dataclass(frozen=True)
class Figures:
    """Cost of sessions through a door. `lost` names features that a session did without, `broken` what failed."""

    door: str
    requests: int
    refused: Counter[Kind]
    rules: list[str]
    lost: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def figures(passage: Passage) -> Figures:
    """Read the logs of a door and the views of its sessions."""
    door, views, log = passage.door, passage.views, [*passage.first, *passage.restarted]
    refused = [exchange for exchange in log if exchange.refusal is not None]
    broken = [
        f"{name}: {view.error.code if view.error else view.status}"
        for name, view in views.items()
        if view.outcome != "accepted"
    ]
    lost = [f"{name}: {one.phase} without a model" for name, view in views.items() for one in view.degraded]
    plans = [exchange for exchange in log if exchange.phase == "plan"]
    if not any(exchange.called for exchange in plans):
        lost.append("no look-ups")
    loose = dict.fromkeys(exchange.phase for exchange in _final(log) if not exchange.held)
    lost += [f"{phase} without a schema" for phase in loose if phase != "other"]
    lost += [f"{phase} cut" for phase in dict.fromkeys(exchange.phase for exchange in log if exchange.cut)]
    return Figures(
        door.name,
        len(log),
        Counter(exchange.kind for exchange in refused),
        [*dict.fromkeys(f"{exchange.phase}: {exchange.rule}" for exchange in refused)],
        lost,
        broken,
    )


def _final(log: list[Exchange]) -> list[Exchange]:
    """The last accepted exchange of each phase of each session: the one with the answer."""
    phases = (list(exchanges) for _, exchanges in groupby(log, key=lambda exchange: exchange.phase))
    accepted = ([exchange for exchange in exchanges if exchange.reply is not None] for exchanges in phases)
    return [exchanges[-1] for exchanges in accepted if exchanges]


async def through(door: Door, dsn: str, flowise: FakeFlowise, *, restart: bool = False) -> Passage:
    """A new flow and a change, and after a `restart` of the service another new flow."""
    os.environ.update(door.credentials)
    with Peer(door, SCRIPT) as peer:
        views: dict[str, SessionView] = {}
        told = set[str]()
        variables = door.settings(peer.endpoint)
        async with service(dsn, flowise, variables) as runtime:
            views["create"] = await run(runtime, REQUIREMENT, told=told)
            if flow := views["create"].chatflow_id:
                views["update"] = await run(runtime, COLDER, operation="update", target=flow)
        seen = len(peer.log)
        if restart:
            async with service(dsn, flowise, variables) as runtime:
                views["after a restart"] = await run(runtime, REQUIREMENT)
    return Passage(door, views, peer.log[:seen], peer.log[seen:], frozenset(told))


def own_variables() -> list[str]:
    """Names of a developer's own settings of models in this process."""
    of_models = ("REASONING_", "OPENAI_", "ANTHROPIC_", "AZURE_", "AWS_", "GOOGLE_", "GEMINI_", "GROQ_", "OLLAMA_")
    others = ("DEEPSEEK_", "MISTRAL_", "OPENROUTER_")
    return [name for name in os.environ if name.startswith((*of_models, *others))]
