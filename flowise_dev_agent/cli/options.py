"""Options that many commands have, and the way in which a command that asks the service is declared."""

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Concatenate, ParamSpec, TypeVar

import typer

from flowise_dev_agent.cli.startup import Exit, with_client

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient

P = ParamSpec("P")
Result = TypeVar("Result", bound=Exit | bool | None)
AsksService = Callable[Concatenate["AgentClient", P], Awaitable[Result]]

Url = Annotated[str | None, typer.Option(help="Address of the service. [default: http://localhost:AGENT_API_PORT]")]
Instance = Annotated[
    str | None, typer.Option(help="Flowise instance, by its name in the service. [default: the first one]")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write. [default: standard output]")]


def asking(app: typer.Typer, *names: str) -> Callable[[AsksService[P, Result]], AsksService[P, Result]]:
    """Declare an async function as a command under each of the names. It gets a client of the service at `--url`.

    Its result decides on the exit code: False means `Exit.NO`. What only the function needs is imported in it, since
    `--help` must not wait for that.
    """

    def declare(command: AsksService[P, Result]) -> AsksService[P, Result]:
        @wraps(command)
        def run(*, url: str | None = None, **given: object) -> None:
            result = with_client(url, lambda client: command(client, **given))  # pyright: ignore[reportCallIssue]
            if code := Exit.NO if result is False else Exit.DONE if result is True else result:
                raise typer.Exit(code)

        _, *own = signature(command).parameters.values()
        address = Parameter("url", Parameter.KEYWORD_ONLY, default=None, annotation=Url)
        setattr(run, "__signature__", signature(command).replace(parameters=[*own, address]))  # noqa: B010 - Typer reads it
        run.__annotations__ = {one.name: one.annotation for one in (*own, address)}
        for name in names:
            app.command(name)(run)
        return command

    return declare
