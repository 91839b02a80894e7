"""`serve`: the API, and a worker with it."""

import socket
from collections.abc import Callable

from flowise_dev_agent.api import create_app
from flowise_dev_agent.api.server import Server, bind, url_of
from flowise_dev_agent.cli.console import say
from flowise_dev_agent.cli.startup import become_ready
from flowise_dev_agent.runtime.runtime import Runtime
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
    async with Runtime.open(settings, worker=worker) as engine:
        await become_ready(settings)
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


def open_listener(settings: Settings, host: str | None, port: int | None) -> tuple[Settings, socket.socket]:
    """The socket to serve on and the settings that say so; see `api.server.bind` for what may be refused."""
    given = {"host": host, "port": port}
    server = settings.server.model_copy(update={name: value for name, value in given.items() if value is not None})
    return settings.model_copy(update={"server": server}), bind(server)
