"""Detect a model server on this machine. It is suggested to the person and never used automatically."""

from collections.abc import Sequence
from typing import Final

import httpx2
from pydantic import BaseModel, ValidationError

from flowise_dev_agent.texts import text

#: Default address of Ollama.
OLLAMA: Final = "http://127.0.0.1:11434"
_SECONDS: Final = 0.2


class _Model(BaseModel):
    name: str


class _Models(BaseModel):
    models: list[_Model]


def offer(found: Sequence[str]) -> str:
    """Sentence that suggests a model and how to set it; `found` are the reachable models."""
    if found:
        return text("no_model.ollama", address=f"{OLLAMA}/v1", models=[*found[:3]])
    return text("no_model.key")


async def local_models(address: str = OLLAMA) -> list[str]:
    """Models of a local Ollama at its default address; empty if it does not answer within 200 ms."""
    try:
        async with httpx2.AsyncClient(timeout=_SECONDS, trust_env=False) as client:
            answer = await client.get(f"{address}/api/tags")
            return [model.name for model in _Models.model_validate_json(answer.content).models]
    except (httpx2.HTTPError, ValidationError):
        return []
