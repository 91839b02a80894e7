"""`notes`: what people have the service remember for their flows."""

from collections.abc import AsyncIterator
from typing import Final

from flowise_dev_agent.cli.console import print_json, say
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.contracts.node_artifacts import Memory, NewMemory

_PAGE: Final = 50


async def list_notes(client: AgentClient, words: str, instance: str | None, *, as_json: bool) -> None:
    """All of them, or those that fit words."""
    found = [note async for note in _every(client, words, instance)]
    if as_json:
        print_json({"notes": [note.model_dump(mode="json") for note in found]})
        return
    for note in found:
        say(f"{note.memory_id}  {note.instance}  {note.text}")
    if not found:
        say("There are no such notes." if words else "There are no notes.")


async def _every(client: AgentClient, words: str, instance: str | None) -> AsyncIterator[Memory]:
    offset = 0
    while True:
        page = await client.memories(words, kind="note", instance=instance, limit=_PAGE, offset=offset)
        for note in page:
            yield note
        if len(page) < _PAGE:
            return
        offset += _PAGE


async def add_note(
    client: AgentClient, text: str, replaces: int | None, instance: str | None, *, as_json: bool
) -> None:
    """Keep one, or put it in the place of `replaces`."""
    mode = "append" if replaces is None else "replace"
    kept = await client.add_memory(NewMemory(text=text, store_mode=mode, memory_id=replaces, instance=instance))
    if as_json:
        print_json(kept)
    else:
        say(f"Remembered as note {kept.memory_id}.")


async def delete_note(client: AgentClient, note_id: int, *, as_json: bool) -> None:
    """Forget one."""
    await client.delete_memory(note_id)
    if as_json:
        print_json({"id": note_id, "deleted": True})
    else:
        say(f"Note {note_id} is forgotten.")
