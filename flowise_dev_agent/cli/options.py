"""Options that many commands have."""

from typing import Annotated

import typer

Url = Annotated[str | None, typer.Option(help="Address of the service. [default: http://localhost:AGENT_API_PORT]")]
Instance = Annotated[
    str | None, typer.Option(help="Flowise instance, by its name in the service. [default: the first one]")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]
