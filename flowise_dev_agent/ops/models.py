"""The models that sessions may plan with, and what is known of each. No provider is asked."""

import asyncio

from pydantic import ValidationError

from flowise_dev_agent.models.capabilities import Capabilities, StoredCapabilities
from flowise_dev_agent.models.prices import cost
from flowise_dev_agent.models.providers import price_list, server_of
from flowise_dev_agent.schemas.service import ModelCheck, ModelView
from flowise_dev_agent.settings import ReasoningSettings
from flowise_dev_agent.texts import Text, text


async def model_views(settings: ReasoningSettings, store: StoredCapabilities) -> list[ModelView]:
    """The models of the settings by name; none without a model."""
    if settings.engine == "deterministic":
        return []
    return list(await asyncio.gather(*(_stored(name, settings, store) for name in sorted(settings.models))))


async def _stored(name: str, settings: ReasoningSettings, store: StoredCapabilities) -> ModelView:
    route = settings.route(name)
    known = await store.load(server_of(route.engine, settings), route.model)
    # Lists of prices take a tenth of a second to load.
    return await asyncio.to_thread(model_view, name, settings, known or Capabilities())


def model_view(name: str, settings: ReasoningSettings, known: Capabilities) -> ModelView:
    """A model by what is known of it, with a sentence for each thing that is lost."""
    route = settings.route(name)
    checked = _checked(known)
    is_priced = cost(route.model, provider=price_list(route.engine, settings), input_tokens=1, output_tokens=1)
    return ModelView(
        model=name,
        checked=checked,
        lacks=[
            *_lost(checked, known),
            *([text("interrupt.lost_thinking")] if _refuses_thinking(settings, known) else []),
            *([text("model.unpriced")] if is_priced is None else []),
        ],
    )


def _lost(checked: ModelCheck | None, known: Capabilities) -> list[Text]:
    lost: list[Text] = []
    if not known.tools or (checked and not checked.tools):
        lost.append(text("interrupt.lost_tools"))
    elif known.together is False or (checked and not checked.tools_with_schema):
        lost.append(text("model.separate"))
    if checked and not checked.schema_held:
        lost.append(text("interrupt.lost_prompt_only" if checked.prompt_only else "interrupt.lost_schema"))
    if checked and not checked.reads_whole_prompt:
        lost.append(text("model.cuts_prompts"))
    return lost


def _refuses_thinking(settings: ReasoningSettings, known: Capabilities) -> bool:
    return bool((settings.effort and not known.effort) or (settings.thinking and not known.thinking))


def _checked(known: Capabilities) -> ModelCheck | None:
    try:
        return ModelCheck.model_validate(known.checked) if known.checked else None
    except ValidationError:
        return None
