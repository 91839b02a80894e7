"""`refresh` and `document-stores`: what a Flowise server has."""

import asyncio
import time
from typing import Final

from flowise_dev_agent.cli.console import fail, print_json, say
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.client import AgentClient

_POLL_SECS: Final = 1.0


async def refresh(client: AgentClient, instance: str, *, wait: float, as_json: bool) -> Exit:
    """Start a refresh, or join one that runs, and wait up to `wait` seconds for its end."""
    view = await client.refresh(instance)
    deadline = time.monotonic() + wait
    while view.status in {"queued", "running"} and time.monotonic() < deadline:
        await asyncio.sleep(_POLL_SECS)
        known = (one.refresh for one in (await client.knowledge()).instances if one.instance == instance)
        view = next(known, None) or view
    if as_json:
        print_json(view)
    elif view.error is not None:
        fail(str(view.error.get("detail", "The refresh failed.")), view.error.get("hint"))
    else:
        say(f"{instance}: {view.status}, {view.steps_done} of {view.steps} steps.")
    return Exit.FAILED if view.status == "failed" else Exit.DONE


async def document_stores(client: AgentClient, instance: str | None, refreshed: str | None, *, as_json: bool) -> None:
    """Print the document stores of a server; with `refreshed` that one, after its sources were read again."""
    from flowise_dev_agent.knowledge.document_stores import store_lines

    if refreshed is not None:
        done = await client.refresh_document_store(refreshed, instance)
        if as_json:
            print_json(done)
        else:
            for line in store_lines([done.store]):
                say(line)
        return
    found = await client.document_stores(instance)
    if as_json:
        print_json(found)
        return
    for line in store_lines(found.stores) or ["There are no document stores."]:
        say(line)
