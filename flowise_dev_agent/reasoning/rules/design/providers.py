"""Model providers by the words that people use for them, and the models that they name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from flowise_dev_agent.reasoning.rules.design.world import World
from flowise_dev_agent.reasoning.rules.language.lexicon import BEGINS, ENDS, constants, pattern, rows
from flowise_dev_agent.reasoning.rules.language.text import Scan, mentions


@dataclass(frozen=True)
class Provider:
    """`model` is for nodes whose schema has no default model; `hosts`: serves models of other houses, too."""

    words: str
    chat: str
    embeddings: str | None = None
    model: str | None = None
    hosts: bool = False


_PROVIDERS = [Provider(**row) for row in rows("providers")]
_BY_CHAT = {provider.chat: provider for provider in reversed(_PROVIDERS)}
CHATS = frozenset(_BY_CHAT)
_WORDS = [(re.compile(rf"(?<!/){BEGINS}(?:{p.words}){ENDS}", re.IGNORECASE), p) for p in _PROVIDERS]
_COMMON = ("chatOpenAI", "chatAnthropic", "chatGoogleGenerativeAI", "chatMistralAI", "groqChat")
#: Fields that hold the id of a model.
MODEL_PARAMS = frozenset({"modelName", "model"})
_EMBEDDINGS = re.compile(r"(?i)\b(?:(?:text-embedding|voyage)-[\w-]+|nomic-embed-text|mxbai-embed-large|embeddings?)\b")
_EMBEDDING_CONTEXT = re.compile(r"embed", re.IGNORECASE)
_EMBEDDINGS_BY = re.compile(r"embeddings?\s(?:from|by|of|with|via|von|mit|de|con|avec|com)\s$", re.IGNORECASE)
_MODEL_TOO = pattern("models", "model_too")
_MODEL_IDS = [
    (re.compile(f"{BEGINS}{row['words']}{ENDS}", re.IGNORECASE), str(row["form"])) for row in rows("model_ids")
]
#: Model ids written out in full, with vendor or size: llama-3.1-8b-instant, mixtral-8x7b-32768.
_FULL_ID = re.compile(
    r"(?<![\w/])((?:[\w.-]{1,60}/)?(?:llama|mixtral|gemma|qwen|grok|sonar)[\w.]{0,20}-[\w.:-]{0,60}\w"
    r"|(?:llama|gemma|qwen|phi|codellama|mistral|deepseek-r)\d[\w.:-]{0,40}(?<![.:-])"
    r"|(?:anthropic|openai|google|mistralai|meta-llama|deepseek|qwen|x-ai|microsoft|nvidia|cohere)/[\w.:-]{2,60}\w)",
    re.IGNORECASE,
)
#: How people write models that Ollama serves: Llama 3.1 8B is llama3.1:8b there.
_OLLAMA = re.compile(
    r"(?<![\w/])(llama|gemma|qwen|phi|mistral|mixtral)(?: (\d(?:\.\d{1,2})?))?(?![\w.-]*\w)(?: (\d{1,3})b)?(?!\w)",
    re.IGNORECASE,
)


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
    named = chat_providers(text)
    return named[-1][1] if named else None


def embeddings_provider(text: str) -> Provider | None:
    """The provider named for the embeddings, if one is named near that word."""
    named = (p for start, p in named_providers(text) if _EMBEDDING_CONTEXT.search(text[start : start + 40]))
    return next((provider for provider in named if provider.embeddings), None)


def note_providers(scan: Scan) -> None:
    """Note where providers, models and embeddings are named."""
    for looked_for, provider in _WORDS:
        scan.find(looked_for, [name for name in (provider.chat, provider.embeddings) if name])
    for looked_for in (_FULL_ID, *(one for one, _ in _MODEL_IDS), *([_OLLAMA] * _is_ollama(scan.text))):
        scan.find(looked_for, params=" ".join(MODEL_PARAMS))
    scan.find(_EMBEDDINGS, ["@Embeddings"])


def model_id(text: str) -> str | None:
    """The model that the text names last, as the provider spells it; None for a family without a version."""
    full = list(mentions(text, _FULL_ID))
    found = [
        (match.start(), form.format(*match.groups()).replace(" ", "-").replace(".", "-" if "claude" in form else "."))
        for looked_for, form in _MODEL_IDS
        for match in mentions(text, looked_for)
    ]
    # A part of an id that is written out in full is none of its own.
    found = [item for item in found if not any(match.start() <= item[0] < match.end() for match in full)]
    found += [(match.start(), match.group(1)) for match in full]
    if _is_ollama(text):
        found += [(match.start(), _ollama_id(match)) for match in mentions(text, _OLLAMA)]
    return max((item for item in found if item[1]), default=(0, ""))[1].lower() or None


def _is_ollama(text: str) -> bool:
    provider = chat_provider(text)
    return provider is not None and provider.chat == "chatOllama"


def _ollama_id(match: re.Match[str]) -> str:
    """The tag at Ollama; empty for a Llama without a version, which is no tag there."""
    family, version, size = match.groups()
    plain = family.lower() == "llama" and not version
    return "" if plain else f"{family}{version or ''}{f':{size}b' if size else ''}"


def belongs(model: str, chat: str) -> bool:
    """Whether a model id is one of that provider's."""
    return next((chat in nodes for family, nodes in constants("families").items() if model.startswith(family)), True)


def provider_of(chat: str) -> Provider | None:
    """The provider of a chat model node."""
    return _BY_CHAT.get(chat)


def default_provider(world: World, *, with_embeddings: bool) -> Provider:
    """The one to take when none is named: whose credential is there, common ones first, else OpenAI."""
    found = (p for p in _in_order(with_embeddings=with_embeddings) if _at_hand(p.chat, world))
    return next(found, _BY_CHAT["chatOpenAI"])


def default_embeddings(world: World) -> str:
    """The embeddings node to take when the chat model's provider has none."""
    names = (provider.embeddings or "" for provider in _in_order(with_embeddings=True))
    return next((name for name in names if _at_hand(name, world)), "openAIEmbeddings")


def _at_hand(name: str, world: World) -> bool:
    return name in world.store.schemas and world.at_hand(world.schema(name))


def _in_order(*, with_embeddings: bool) -> Iterable[Provider]:
    ordered = [_BY_CHAT[name] for name in _COMMON] + [p for p in _PROVIDERS if p.chat not in _COMMON]
    # Those that serve both come first: one credential instead of two.
    return sorted(ordered, key=lambda provider: with_embeddings and provider.embeddings is None)


def _for_embeddings_only(text: str, start: int) -> bool:
    if _EMBEDDINGS_BY.search(text[max(0, start - 40) : start]):
        return True
    behind = text[start : start + 40]
    match = _EMBEDDING_CONTEXT.search(behind)
    # "OpenAI embeddings" names no chat model, "OpenAI for the model and embeddings" does.
    return match is not None and not _MODEL_TOO.search(behind[: match.start()])
