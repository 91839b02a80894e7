"""Model providers by the words that people use for them, and the models that they name."""

import re
from collections.abc import Set
from dataclasses import dataclass

from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import BEGINS, ENDS, constants, pattern
from flowise_dev_agent.reasoning.rules.language.text import Scan, mentions


@dataclass(frozen=True)
class Provider:
    """`model` is for nodes whose schema has no default model; `hosts`: serves models of other houses, too."""

    words: str
    chat: str
    embeddings: str | None = None
    model: str | None = None
    hosts: bool = False
    rank: int = 9


_PROVIDERS = [Provider(**row) for row in constants("providers")]
#: Chat model node -> its provider.
BY_CHAT = {provider.chat: provider for provider in reversed(_PROVIDERS)}
CHATS = frozenset(BY_CHAT)
_WORDS = [(re.compile(rf"(?<!/){BEGINS}(?:{p.words}|{p.chat}){ENDS}", re.IGNORECASE), p) for p in _PROVIDERS]
#: Fields that hold the id of a model.
MODEL_PARAMS = frozenset({"modelName", "model"})
_EMBEDDING_MODEL = r"(?i)\b(text-embedding-[\w-]+|nomic-embed-text|mxbai-embed-large|voyage-[\w-]+)"
_EMBEDDINGS = re.compile(rf"{_EMBEDDING_MODEL}|\bembeddings?\b")
_EMBEDDING_CONTEXT, _NO_CHAT = re.compile(r"embed", re.IGNORECASE), re.compile(r"embed|re-?rank", re.IGNORECASE)
_EMBEDDINGS_BY = re.compile(r"embeddings?\s(?:from|by|of|with|via|von|mit|de|con|avec|com)\s$", re.IGNORECASE)
_MODEL_TOO = pattern("models", "model_too")
#: Where Ollama listens.
MODEL_SERVER = re.compile(r"https?://[^/\s]+:11434(?!\d)")
#: (words, form of the id, the provider that it is one of alone)
_MODEL_IDS = [
    (re.compile(f"{BEGINS}{row['words']}{ENDS}", re.IGNORECASE), str(row["form"]), row.get("chat"))
    for row in constants("model_ids")
]


def named_providers(text: str) -> list[tuple[int, Provider]]:
    """(position, provider) of each mention that is not negated, in order; a stretch of text counts once."""
    found: list[tuple[int, int, Provider]] = []
    for looked_for, provider in _WORDS:
        for match in mentions(text, looked_for):
            if not any(start < match.end() and match.start() < end for start, end, _ in found):
                found.append((*match.span(), provider))
    return [(start, provider) for start, _, provider in sorted(found, key=lambda item: item[0])]


def chat_providers(text: str) -> list[tuple[int, Provider]]:
    """The mentions that are there for more than embeddings; where a host is named, the hosts."""
    named = [(start, provider) for start, provider in named_providers(text) if not _for_embeddings_only(text, start)]
    return [item for item in named if item[1].hosts] or named


def chat_provider(text: str) -> Provider | None:
    """The provider of the chat model: the last one named."""
    return next((provider for _, provider in reversed(chat_providers(text))), None)


def named_model(said: str | None, world: World) -> tuple[Provider | None, str | None]:
    """The provider and the model that a form names, none where it names none. Raises DeclinedError: an unknown one."""
    provider, model = chat_provider(said or ""), model_id(said or "")
    if said and provider is None:
        raise world.decline("declined_unknown", name=said, near="")
    return provider, model


def embeddings_provider(text: str) -> Provider | None:
    """The provider named for the embeddings, if one is named near that word."""
    named = (p for start, p in named_providers(text) if _EMBEDDING_CONTEXT.search(text[start : start + 40]))
    found = next((provider for provider in named if provider.embeddings), None)
    return found or (chat_provider(text) if pattern("models", "embeddings_too").search(text) else None)


def note_providers(scan: Scan) -> None:
    """Note where providers, models and embeddings are named."""
    for looked_for, provider in _WORDS:
        scan.find(looked_for, [name for name in (provider.chat, provider.embeddings) if name])
    for looked_for, _ in _ids(scan.text):
        scan.find(looked_for, params=" ".join(MODEL_PARAMS))
    scan.find(_EMBEDDINGS, ["@Embeddings"])


def model_id(text: str) -> str | None:
    """The model that the text names last, as the provider spells it; None for a family without a version."""
    return next(reversed(model_ids(text)), None)


def model_ids(text: str) -> list[str]:
    """All models that the text names, in order."""
    found: dict[tuple[int, int], str] = {}
    for looked_for, form in _ids(text):
        for match in mentions(text, looked_for):
            name = form.format(*(group or "" for group in match.groups())).replace(" ", "-").lower()
            found[match.span()] = name.replace(".", "-") if "claude" in form else name
    # A part of a longer id is none of its own.
    return [name for (start, end), name in sorted(found.items())
            if name and not any(a <= start and end <= b and (a, b) != (start, end) for a, b in found)]  # fmt: skip


def embedding_model(text: str) -> str | None:
    return found[1].lower() if (found := re.search(_EMBEDDING_MODEL, text)) else None


def _ids(text: str) -> list[tuple[re.Pattern[str], str]]:
    provider = chat_provider(text)
    return [(words, form) for words, form, chat in _MODEL_IDS if not chat or (provider and provider.chat == chat)]


def belongs(model: str, chat: str) -> bool:
    """Whether a model id is one of that provider's."""
    return next((chat in nodes for family, nodes in constants("families").items() if model.startswith(family)), True)


def default_provider(world: World, denied: Set[str], *, with_embeddings: bool) -> Provider:
    """The one to take when none is named: whose credential is there, common ones first, else OpenAI; none of those
    `denied`."""
    # Those that serve both come first: one credential instead of two.
    ordered = sorted(_PROVIDERS, key=lambda provider: (with_embeddings and provider.embeddings is None, provider.rank))
    return BY_CHAT[world.first([provider.chat for provider in ordered if provider.chat not in denied])]


def default_embeddings(world: World) -> str:
    """The embeddings node to take when the chat model's provider has none."""
    return world.first([p.embeddings for p in sorted(_PROVIDERS, key=lambda one: one.rank) if p.embeddings])


def _for_embeddings_only(text: str, start: int) -> bool:
    before, behind = text[max(0, start - 40) : start], text[start : start + 40]
    match = _NO_CHAT.search(behind)
    # "OpenAI embeddings" names no chat model, "OpenAI for the model and embeddings" does.
    return bool((match and not _MODEL_TOO.search(behind[: match.start()])) or _EMBEDDINGS_BY.search(before))
