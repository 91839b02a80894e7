"""Announced ends of models: which models of a flow have ended or end soon, and what their server offers instead.

The table is `model_ends.json`, written by `scripts/model_ends.py`: provider, model, date, replacement, source.
"""

import asyncio
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from time import monotonic
from typing import Final, Literal, NamedTuple
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict

from flowise_dev_agent.errors import FlowiseError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.patch.model.model_uses import ModelEnd, ModelUse

#: An end that is nearer is told.
NOTICE: Final = timedelta(days=180)
#: Node type -> provider whose ends apply. Not listed are gateways, own servers and hosts of open models: what they
#: serve is their own affair.
PROVIDERS: Final[Mapping[str, str]] = {
    "AWSBedrockEmbeddings": "bedrock",
    "awsChatBedrock": "bedrock",
    "azureChatOpenAI": "azure",
    "azureChatOpenAI_LlamaIndex": "azure",
    "azureOpenAI": "azure",
    "chatAnthropic": "anthropic",
    "chatAnthropic_LlamaIndex": "anthropic",
    "chatCerebras": "cerebras",
    "chatCohere": "cohere",
    "chatDeepseek": "deepseek",
    "chatGoogleGenerativeAI": "google",
    "chatGoogleVertexAI": "vertex",
    "chatGroq_LlamaIndex": "groq",
    "chatMistralAI": "mistral",
    "chatMistral_LlamaIndex": "mistral",
    "chatOpenAI": "openai",
    "chatOpenAI_LlamaIndex": "openai",
    "chatPerplexity": "perplexity",
    "chatXAI": "xai",
    "cohere": "cohere",
    "cohereEmbeddings": "cohere",
    "googleGenerativeAiEmbeddings": "google",
    "googlevertexai": "vertex",
    "googlevertexaiEmbeddings": "vertex",
    "groqChat": "groq",
    "mistralAIEmbeddings": "mistral",
    "openAI": "openai",
    "openAIEmbedding_LlamaIndex": "openai",
    "openAIEmbeddings": "openai",
}
#: Load method of a field that lists models.
LIST_METHOD: Final = "listModels"
#: Seconds for all lists together; without them the replacement that the source names is offered.
_LOOKUP_SECS: Final = 5.0
#: Seconds for which a list is kept, and for which a server that gave none is not asked again.
_KEPT_SECS: Final = 600.0
_RETRY_SECS: Final = 60.0

#: An option that may be offered: ids go into prompts and sentences.
_ID: Final = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,119}")
#: Region and vendor before a model id, the word for open weights, and the revision behind it.
_AROUND: Final = re.compile(r"^(?:(?:us|eu|apac|global)\.)?(?:[a-z0-9]+\.(?=[a-z])|[\w-]+/)?(?:open-)?")
_REVISION: Final = re.compile(r"-v\d+(?::\d+)?$")
_SNAPSHOT: Final = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4})(?=-|$)")
_GENERATION: Final = re.compile(r"([a-z]+)(\d+(?:\.\d+)*)")
_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)*)o?")
_PREVIEW: Final = frozenset({"preview", "exp", "experimental", "beta"})
_LATEST: Final = "latest"
#: Words for a size: no model takes the place of one of another size.
_SIZES: Final[Mapping[str, str]] = {
    **{size: size for size in ("nano", "micro", "mini", "lite", "small", "haiku")},
    "tiny": "small",
}
#: A preview of the same size is as far as a model between one and two words away.
_PREVIEW_DISTANCE: Final = 1.5
#: Brands that one provider goes on under another name.
_BRANDS: Final[Mapping[str, str]] = {"o": "gpt", "chatgpt": "gpt", "codex": "gpt"}


class _List(NamedTuple):
    names: tuple[str, ...]
    until: float


_NO_LIST: Final = _List((), -math.inf)


@dataclass
class _Kept:
    """Lists of a server. Who comes while they are asked for waits for them."""

    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    lists: dict[str, _List] = field(default_factory=dict[str, _List])


_KEPT: Final[WeakKeyDictionary[FlowiseClient, _Kept]] = WeakKeyDictionary()


class AnnouncedEnd(BaseModel):
    """One row of the table: the day from which the provider no longer serves the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: str
    model: str
    date: date
    replacement: str
    source: str


@cache
def announced_ends() -> Mapping[tuple[str, str], AnnouncedEnd]:
    """The table, by provider and model."""
    text = files(__package__ or "").joinpath("model_ends.json").read_text("utf-8")
    return {(row.provider, row.model): row for row in map(AnnouncedEnd.model_validate, json.loads(text))}


def announced_end(node_type: str, model: str) -> AnnouncedEnd | None:
    """The announced end of a model of a node type; None if none is known."""
    return announced_ends().get((PROVIDERS.get(node_type, ""), model))


def status(node_type: str, model: str, on: date) -> Literal["ended", "ends_soon", "served"]:
    """Announced state of a model of a node type on a day; `served` also where no end is known."""
    known = announced_end(node_type, model)
    if known is None or known.date > on + NOTICE:
        return "served"
    return "ended" if known.date <= on else "ends_soon"


def ending(node_type: str, model: str, on: date, options: Sequence[str] = ()) -> ModelEnd | None:
    """The end of a model that is no longer `served`; None for another one.

    The replacement is one of the `options` of the server, if they have one; else the one that the source names.
    """
    known = announced_end(node_type, model)
    if known is None or status(node_type, model, on) == "served":
        return None
    named = _named_replacement(node_type, model, on)
    replacement = newest(node_type, model, options, on) or (named if _size(named) == _size(model) else "")
    return ModelEnd(known.date, known.date <= on, replacement)


def newest(node_type: str, model: str, options: Sequence[str], on: date) -> str:
    """The newest of the `options` that is of the model's family and goes on to be served; '' if there is none.

    The replacement that the source names comes first. The family are the models of the same brand and size; those with
    the same words for purpose come first. A preview counts as less alike than a stable model of a neighbouring size.
    """
    served = [one for one in options if status(node_type, one, on) == "served" and _size(one) == _size(model)]
    if (named := _named_replacement(node_type, model, on)) in served:
        return named
    wanted = _parts(model)
    family = [one for one in served if _parts(one).brand == wanted.brand]
    return min(family, key=lambda one: _distance(wanted, _parts(one)), default="")


def _named_replacement(node_type: str, model: str, on: date) -> str:
    """The replacement that the sources name, and of one that is no longer served its own; '' if they name none."""
    seen: set[str] = set()
    while (known := announced_end(node_type, model)) and model not in seen and status(node_type, model, on) != "served":
        seen.add(model)
        model = known.replacement
    return model if seen and model not in seen else ""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a model id: brand, words for size and purpose, version, and whether it is a preview or a snapshot."""

    brand: str
    words: frozenset[str]
    version: tuple[float, ...]
    is_preview: bool
    is_snapshot: bool


def _distance(wanted: _Parts, other: _Parts) -> tuple[float, tuple[float, ...], bool]:
    """Least for the model that is most alike; of several for the newest, without a date in its name."""
    unlike = len(wanted.words ^ other.words) + _PREVIEW_DISTANCE * other.is_preview
    return unlike, tuple(-number for number in other.version), other.is_snapshot


def _size(model: str) -> frozenset[str]:
    return frozenset(_SIZES[word] for word in _parts(model).words if word in _SIZES)


def brand_of(model: str) -> str:
    """Brand of a model, which its successors keep: `llama` of `meta-llama/llama-3.3-70b`, `gpt` of `o3`."""
    return _parts(model).brand


def words_of(model: str) -> frozenset[str]:
    """Words for size and purpose in the name of a model: `flash` of `gemini-2.5-flash`."""
    return _parts(model).words


@cache
def _parts(model: str) -> _Parts:
    """Split an id such as `claude-3-5-haiku-20241022` or `gpt-4o-mini`."""
    name = _REVISION.sub("", _AROUND.sub("", model.casefold()))
    plain = _SNAPSHOT.sub("", name)
    first, *rest = [one for one in re.split(r"[-_@ ]", plain) if one] or [plain]
    found = _GENERATION.fullmatch(first)
    brand, version = (found[1], _numbers(found[2])) if found else (first, [])
    words: set[str] = set()
    for word in rest:
        if numbered := _VERSION.fullmatch(word):
            version += _numbers(numbered[1])
        else:
            words.add(word)
    if not version and _LATEST in words:
        version = [math.inf]
    return _Parts(
        brand=_BRANDS.get(brand, brand),
        words=frozenset(words - _PREVIEW - {_LATEST}),
        version=tuple(version),
        is_preview=not words.isdisjoint(_PREVIEW),
        is_snapshot=plain != name,
    )


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(".")]


@dataclass(frozen=True, slots=True)
class UsedModel:
    """A model of a flow, its end if it has ended or ends soon, and the newest model like it that the server offers."""

    use: ModelUse
    end: ModelEnd | None
    newest: str


async def used_models(
    uses: Iterable[ModelUse], client: FlowiseClient, *, ending_only: bool = True, on: date | None = None
) -> list[UsedModel]:
    """The models with what is known of their ends on a day (default: today), by the server's own lists.

    With `ending_only` the others are left out, and their lists are not asked for.
    """
    day = on or datetime.now(UTC).date()
    told = [use for use in uses if not ending_only or ending(use.component, use.model, day)]
    lists = await listed_models({use.component for use in told}, client)
    found: list[UsedModel] = []
    for use in told:
        options = lists.get(use.component, ())
        end = ending(use.component, use.model, day, options)
        found.append(UsedModel(use, end, newest(use.component, use.model, options, day)))
    return found


async def listed_models(node_types: Iterable[str], client: FlowiseClient) -> dict[str, tuple[str, ...]]:
    """Names of the models that the server lists, by node type; empty where it gives none in time."""
    kept = _KEPT.setdefault(client, _Kept())

    async def read(node_type: str) -> None:
        with suppress(FlowiseError):
            options = await client.node_options(node_type, LIST_METHOD)
            names = (str(one["name"]) for one in options if "name" in one)
            kept.lists[node_type] = _List(tuple(filter(_ID.fullmatch, names)), monotonic() + _KEPT_SECS)

    async with kept.asking:
        now = monotonic()
        wanted = sorted(one for one in node_types if kept.lists.get(one, _NO_LIST).until < now)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOKUP_SECS), asyncio.TaskGroup() as group:
                for node_type in wanted:
                    group.create_task(read(node_type))
        # A server that cannot reach its source of models lets its caller wait: it is not asked again at once.
        for node_type in wanted:
            if kept.lists.get(node_type, _NO_LIST).until < now:
                kept.lists[node_type] = _List((), now + _RETRY_SECS)
    return {node_type: one.names for node_type, one in kept.lists.items()}
