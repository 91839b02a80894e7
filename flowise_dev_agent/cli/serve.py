"""`serve` and `worker`: the processes that run for long."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable

from flowise_dev_agent.api import create_app, create_worker_app
from flowise_dev_agent.api.routes.health import flowise_health
from flowise_dev_agent.api.server import Server, bind, url_of
from flowise_dev_agent.cli.console import say, warn
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.runtime.engine import Engine
from flowise_dev_agent.settings import Settings

#: Called once the service accepts requests, with its address and the server (to stop it).
OnReady = Callable[[str, Server], None]


async def serve(
    settings: Settings,
    listener: socket.socket,
    *,
    worker: bool = True,
    model_stand_in: bool = False,
    on_ready: OnReady | None = None,
) -> None:
    """Run the API, and a worker with it, until SIGINT or SIGTERM; what runs then is handed back before it returns."""
    async with Engine.open(settings, worker=worker) as engine:
        await warn_about_flowise(settings)
        app = create_app(settings, engine, model_stand_in=model_stand_in)
        server = Server(app)
        url = url_of(listener)
        say(f"Flowise Dev Agent listens at {url} (API reference: {url}/docs). Ctrl-C ends it.")
        if settings.server.api_key is None:
            say("AGENT_API_KEY is not set: only this machine can reach the service, and anyone on it may use it.")
        listener.listen()
        if on_ready:
            on_ready(url, server)
        await server.serve(sockets=[listener])


async def work(settings: Settings, listener: socket.socket | None = None) -> None:
    """Run a worker until SIGINT or SIGTERM, without an API; on `listener` it tells how it is."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    async with Engine.open(settings, worker=True) as engine:
        await warn_about_flowise(settings)
        say("The worker takes up sessions. Ctrl-C ends it.")
        if listener is None or stop.is_set():
            await stop.wait()
        else:
            listener.listen()
            say(f"Its metrics are at {url_of(listener)}/metrics.")
            await Server(create_worker_app(settings, engine)).serve(sockets=[listener])
        say("Handing back what is running ...")


def open_listener(settings: Settings, host: str | None, port: int | None) -> tuple[Settings, socket.socket]:
    """The socket to serve on and the settings that say so; see `api.server.bind` for what may be refused."""
    given = {"host": host, "port": port}
    server = settings.server.model_copy(update={name: value for name, value in given.items() if value is not None})
    return settings.model_copy(update={"server": server}), bind(server)


async def warn_about_flowise(settings: Settings) -> None:
    """Say now what would otherwise stop the first session; the service starts all the same."""
    instances = Instances(settings.flowise)
    try:
        states = await flowise_health(instances)
    finally:
        await instances.aclose()
    for instance, state in states.items():
        if error := state.get("error"):
            warn(f"Flowise instance '{instance}': {error['detail']} {error.get('hint', '')}".rstrip())
