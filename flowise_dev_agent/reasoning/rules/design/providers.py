"""Model providers by the words that people use for them, and the models that they name."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from flowise_dev_agent.patch import Schemas
from flowise_dev_agent.reasoning.rules.language import grammar
from flowise_dev_agent.reasoning.rules.language.scan import Scan
from flowise_dev_agent.reasoning.rules.language.text import mentions


@dataclass(frozen=True)
class Provider:
    """`model` is for nodes whose schema has no default model."""

    words: str
    chat: str
    embeddings: str | None = None
    model: str | None = None
    #: Serves models of other houses, too: "Llama on Groq" is Groq's.
    hosts: bool = False


#: The more specific first: "Azure OpenAI" is not OpenAI.
_PROVIDERS = (
    Provider(r"azure(?:[ -]?open ?ai)?", "azureChatOpenAI", "azureOpenAIEmbeddings", "gpt-4o", hosts=True),
    Provider(r"(?:aws )?bedrock", "awsChatBedrock", "AWSBedrockEmbeddings", hosts=True),
    Provider(r"vertex(?: ?ai)?", "chatGoogleVertexAI", "googlevertexaiEmbeddings", "gemini-2.5-flash", hosts=True),
    Provider(r"open ?router", "chatOpenRouter", None, "openai/gpt-4o-mini", hosts=True),
    Provider(r"groq", "groqChat", None, "llama-3.3-70b-versatile", hosts=True),
    Provider(r"ollama", "chatOllama", "ollamaEmbedding", "llama3.2", hosts=True),
    Provider(r"anthropic|claude", "chatAnthropic"),
    Provider(r"gemini|google ai", "chatGoogleGenerativeAI", "googleGenerativeAiEmbeddings"),
    Provider(r"mi[sx]tral", "chatMistralAI", "mistralAIEmbeddings"),
    Provider(r"deep ?seek", "chatDeepseek"),
    Provider(r"cohere|command[ -]r", "chatCohere", "cohereEmbeddings"),
    Provider(r"perplexity", "chatPerplexity"),
    Provider(r"\bx\.?ai\b|grok", "chatXAI", None, "grok-3-mini"),
    Provider(
        r"together(?: ?ai)\b",
        "chatTogetherAI",
        "togetherAIEmbedding",
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        hosts=True,
    ),
    Provider(r"fireworks", "chatFireworks", hosts=True),
    Provider(r"cerebras", "chatCerebras", hosts=True),
    Provider(r"samba ?nova", "chatSambanova", hosts=True),
    Provider(
        r"hugging ?face",
        "chatHuggingFace",
        "huggingFaceInferenceEmbeddings",
        "HuggingFaceH4/zephyr-7b-beta",
        hosts=True,
    ),
    Provider(r"watsonx", "chatIBMWatsonx", "ibmEmbedding", "ibm/granite-3-8b-instruct", hosts=True),
    Provider(
        r"open ?ai|chat ?gpt|gpt[ -]?\d[\w.-]*|\bo[1345](?:-mini|-pro)?\b|\bgpt\b", "chatOpenAI", "openAIEmbeddings"
    ),
    # Llama has no house of its own; Groq serves it.
    Provider(r"llama[ -]?[\d.]*", "groqChat", None, "llama-3.3-70b-versatile"),
)
_BY_CHAT = {provider.chat: provider for provider in reversed(_PROVIDERS)}
_WORDS = [(re.compile(rf"(?<![\w/])(?:{p.words})(?!\w)", re.IGNORECASE), p) for p in _PROVIDERS]
#: Fields that hold the id of a model.
MODEL_PARAMS = ("modelName", "model", "llmModelConfig.modelName", "agentModelConfig.modelName")
_EMBEDDINGS = re.compile(
    r"\b(?:text-embedding-[\w-]+|nomic-embed-text|mxbai-embed-large|voyage-[\w-]+|embeddings?)\b", re.IGNORECASE
)
_EMBEDDING_CONTEXT = re.compile(r"embed", re.IGNORECASE)
_MODEL_TOO = grammar.pattern("providers", "model_too")

_NEWEST = {"sonnet": "claude-sonnet-4-6", "haiku": "claude-haiku-4-5", "opus": "claude-opus-4-7"}
_CLAUDE = re.compile(
    r"(claude-[a-z0-9.-]{0,40}?\d{8})|claude[ -]+(?:(\d(?:[.-]\d+)?)[ -]+)?(opus|sonnet|haiku)(?:[ -]+(\d(?:[.-]\d+)"
    r"?))?(?!\w)",
    re.IGNORECASE,
)
_MODEL_IDS = (
    (
        re.compile(
            r"\bgpt[ -]?(\d(?:\.\d+)?o?)"
            r"((?:[ -](?:mini|nano|turbo|pro|preview|latest|instruct|chat|codex|\d{4}-\d\d-\d\d|\d{4}|\d\dk))*)(?!\w)",
            re.IGNORECASE,
        ),
        "gpt-{}",
    ),
    (re.compile(r"\b(o[1345])((?:[ -](?:mini|pro))?)\b", re.IGNORECASE), "{}"),
    (re.compile(r"\bgemini[ -](\d(?:\.\d)?)([ -](?:pro|flash(?:[ -]lite)?))\b", re.IGNORECASE), "gemini-{}"),
    (re.compile(r"\bmistral[ -](tiny|small|medium|large)((?:[ -]latest)?)\b", re.IGNORECASE), "mistral-{}"),
    (re.compile(r"\bdeepseek[ -](chat|reasoner)()\b", re.IGNORECASE), "deepseek-{}"),
    (re.compile(r"\b(command-r)((?:-plus|7b[\w-]*)?)\b", re.IGNORECASE), "{}"),
)
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
    for pattern, provider in _WORDS:
        for match in mentions(text, pattern):
            if not any(start < match.end() and match.start() < end for start, end, _ in found):
                found.append((match.start(), match.end(), provider))
    return [(start, provider) for start, _, provider in sorted(found, key=lambda item: item[0])]


def chat_provider(text: str) -> Provider | None:
    """The provider of the chat model: the last one named that is not there only for embeddings."""
    named = [provider for start, provider in named_providers(text) if not _for_embeddings_only(text, start)]
    hosts = [provider for provider in named if provider.hosts]
    return (hosts or named or [None])[-1]


def embeddings_provider(text: str) -> Provider | None:
    """The provider named for the embeddings, if one is named near that word."""
    named = [
        provider
        for start, provider in named_providers(text)
        if provider.embeddings and _EMBEDDING_CONTEXT.search(text[start : start + 40])
    ]
    return named[0] if named else None


def note_providers(scan: Scan) -> None:
    """Note where providers, models and embeddings are named."""
    for pattern, provider in _WORDS:
        names = [provider.chat, *([provider.embeddings] if provider.embeddings else [])]
        scan.find(pattern, names=names)
    for pattern in (_FULL_ID, _CLAUDE, *(pattern for pattern, _ in _MODEL_IDS)):
        scan.find(pattern, params=MODEL_PARAMS)
    if _is_ollama(scan.text):
        scan.find(_OLLAMA, params=MODEL_PARAMS)
    scan.find(_EMBEDDINGS, names=["@Embeddings"])


def model_id(text: str) -> str | None:
    """The model that the text names last, as the provider spells it; None for a family without a version."""
    full = list(mentions(text, _FULL_ID))
    found = [(match.start(), _claude_id(match)) for match in mentions(text, _CLAUDE)]
    found += [
        (match.start(), form.format(f"{match.group(1)}{match.group(2)}".replace(" ", "-")))
        for pattern, form in _MODEL_IDS
        for match in mentions(text, pattern)
    ]
    # A part of an id that is written out in full is none of its own.
    found = [item for item in found if not any(match.start() <= item[0] < match.end() for match in full)]
    found += [(match.start(), match.group(1)) for match in full]
    if _is_ollama(text):
        found += [(match.start(), _ollama_id(match)) for match in mentions(text, _OLLAMA)]
    named = [(position, name) for position, name in found if name]
    return max(named)[1].lower() if named else None


def _is_ollama(text: str) -> bool:
    provider = chat_provider(text)
    return provider is not None and provider.chat == "chatOllama"


def _ollama_id(match: re.Match[str]) -> str:
    """The tag at Ollama; empty for a Llama without a version, which is no tag there."""
    family, version, size = match.groups()
    if family.lower() == "llama" and not version:
        return ""
    return f"{family}{version or ''}{f':{size}b' if size else ''}"


def _claude_id(match: re.Match[str]) -> str:
    dated, before, tier, behind = match.groups()
    version = (behind or before or "").replace(".", "-")
    if dated:
        return dated
    if not version:
        # A tier without a version means the newest that is known here.
        return _NEWEST[tier.lower()]
    # From version 4 on the number stands at the end.
    return f"claude-{tier}-{version}" if version[0] >= "4" else f"claude-{version}-{tier}-latest"


def belongs(model: str, chat: str) -> bool:
    """Whether a model id is one of that provider's; an unknown family is trusted."""
    owners = {
        "gpt": ("chatOpenAI", "azureChatOpenAI", "chatOpenRouter"),
        "claude": ("chatAnthropic", "awsChatBedrock", "chatOpenRouter"),
        "gemini": ("chatGoogleGenerativeAI", "chatGoogleVertexAI", "chatOpenRouter"),
        "mistral": ("chatMistralAI", "chatOllama", "awsChatBedrock", "groqChat", "chatOpenRouter"),
        "deepseek": ("chatDeepseek", "groqChat", "chatOllama", "chatOpenRouter"),
        "command": ("chatCohere",),
    }
    return next((chat in nodes for family, nodes in owners.items() if model.startswith(family)), True)


def provider_of(chat: str) -> Provider | None:
    """The provider of a chat model node."""
    return _BY_CHAT.get(chat)


def default_provider(schemas: Schemas, available: Mapping[str, int], *, with_embeddings: bool) -> Provider:
    """The one to take when none is named: whose credential is there, common ones first, else OpenAI."""
    for provider in _in_order(with_embeddings=with_embeddings):
        schema = schemas.get(provider.chat)
        if schema and any(available.get(name) for name in schema.credential_names):
            return provider
    return _BY_CHAT["chatOpenAI"]


def default_embeddings(schemas: Schemas, available: Mapping[str, int]) -> str:
    """The embeddings node to take when the chat model's provider has none."""
    for provider in _in_order(with_embeddings=True):
        schema = schemas.get(provider.embeddings or "")
        if schema and any(available.get(name) for name in schema.credential_names):
            return schema.name
    return "openAIEmbeddings"


def _in_order(*, with_embeddings: bool) -> Iterable[Provider]:
    common = ("chatOpenAI", "chatAnthropic", "chatGoogleGenerativeAI", "chatMistralAI", "groqChat")
    ordered = [_BY_CHAT[name] for name in common]
    ordered += [provider for provider in _PROVIDERS if provider.chat not in common]
    if with_embeddings:
        # Those that serve both come first: one credential instead of two.
        ordered.sort(key=lambda provider: provider.embeddings is None)
    return ordered


def _for_embeddings_only(text: str, start: int) -> bool:
    behind = text[start : start + 40]
    match = _EMBEDDING_CONTEXT.search(behind)
    # "OpenAI embeddings" names no chat model, "OpenAI for the model and embeddings" does.
    return match is not None and not _MODEL_TOO.search(behind[: match.start()])
