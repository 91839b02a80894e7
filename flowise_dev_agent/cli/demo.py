"""`demo`: start everything on this machine, build one chatflow, then keep the service running."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Final, NoReturn

from pydantic import SecretStr
from pydantic.networks import HttpUrl

from flowise_dev_agent.api.server import Server
from flowise_dev_agent.cli.build import build
from flowise_dev_agent.cli.console import fail_with, out, say
from flowise_dev_agent.cli.serve import open_listener, serve
from flowise_dev_agent.cli.startup import Exit, with_database
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.devkit.flowise import FLOWISE_VERSION
from flowise_dev_agent.devkit.stack import DevStack, embedded_database
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.settings import FlowiseSettings, Settings

REQUIREMENT: Final = "Build a customer support assistant with gpt-5.4-mini"


def run(settings: Settings, *, once: bool, port: int | None) -> bool:
    """Start what is needed, build, and serve until Ctrl-C (`once`: stop after the build); True when the build worked.

    With FLOWISE_API_ENDPOINT or FLOWISE_INSTANCES set, that Flowise is used and none is installed.
    """
    # Before anything is installed: a port in use is the most frequent problem.
    settings, listener = open_listener(settings, None, port)
    own_flowise = {"api_endpoint", "instances_json"} & settings.flowise.model_fields_set
    surroundings = _with_own_flowise if own_flowise else _with_local_flowise
    with listener, _sigterm_unwinds(), surroundings(settings) as ready:
        if ready.reasoning.engine == "deterministic":
            say("No model plans: words choose a starter. Set ANTHROPIC_API_KEY or OPENAI_API_KEY to have one.")
        else:
            say(f"{ready.reasoning.model_for('plan')} plans ({ready.reasoning.engine}).")
        worked = asyncio.run(_build_and_serve(ready, listener, once=once))
        say("Stopping what the demo started ...")
    return worked


@contextmanager
def _with_local_flowise(settings: Settings) -> Generator[Settings]:
    out().rule("Setting up")
    say(
        f"This demo runs a real Flowise {FLOWISE_VERSION} on this machine. The first run downloads it into your cache\n"
        "folder (about 3 GB, several minutes); later runs start in seconds. To use your own Flowise instead, press\n"
        "Ctrl-C and set FLOWISE_API_ENDPOINT and FLOWISE_API_KEY."
    )
    say("A LOCAL STAND-IN plays the models inside the flows: its answers are made up, and no provider is called.")
    with ExitStack() as started:
        stack = DevStack()
        started.callback(stack.stop)
        stack.start(say)
        say(f"Flowise: {stack.flowise.endpoint} (user {stack.flowise.email}, password in {stack.access_file})")
        flowise = FlowiseSettings(
            FLOWISE_API_ENDPOINT=HttpUrl(stack.flowise.endpoint),
            FLOWISE_API_KEY=stack.flowise.api_key,
            FLOWISE_MODEL_STAND_IN=True,
        )
        yield with_database(settings.model_copy(update={"flowise": flowise}), stack.dsn)


@contextmanager
def _with_own_flowise(settings: Settings) -> Generator[Settings]:
    out().rule("Setting up")
    say(f"Using your Flowise at {settings.flowise.instances[0].endpoint}; the demo creates one chatflow there.")
    with embedded_database() as dsn:
        yield with_database(settings, dsn)


async def _build_and_serve(settings: Settings, listener: socket.socket, *, once: bool) -> bool:
    building: asyncio.Task[bool] | None = None

    def on_ready(url: str, server: Server) -> None:
        nonlocal building
        building = asyncio.create_task(_build(url, settings.server.api_key, server.stop if once else None))

    await serve(settings, listener, on_ready=on_ready)
    if building is None or not building.done():
        if building is not None:
            building.cancel()
        return False
    return building.result()


async def _build(url: str, key: SecretStr | None, then: Callable[[], None] | None) -> bool:
    out().rule("Building")
    say(f'flowise-dev-agent build "{REQUIREMENT}"', "bold")
    worked = False
    try:
        async with AgentClient(url, key) as client:
            worked = await build(client, StartSession(requirement=REQUIREMENT), assume_yes=True) is Exit.DONE
    except AgentError as error:
        fail_with(error)
    if then is None:
        say(f"\nOpen {url} in a browser: the chatbot, its plan and its tests are there. Press Ctrl-C to stop.", "bold")
    else:
        then()
    return worked


@contextmanager
def _sigterm_unwinds() -> Generator[None]:
    """Let SIGTERM stop what this process has started before the process ends."""

    def unwind(*_: object) -> NoReturn:
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
