"""Model providers and models by their names."""

import re
from dataclasses import dataclass
from typing import Final

from flowise_dev_agent.forms.offer import DeclinedError, Offer
from flowise_dev_agent.patch.model.suggest import fold
from flowise_dev_agent.texts import text


@dataclass(frozen=True)
class Provider:
    """A model provider, by its node types.

    `names` are its common names, `families` the prefixes of its models' ids, `model` is for node types without a
    default model. `common` is its rank if no provider is named.
    """

    chat: str
    names: tuple[str, ...]
    families: tuple[str, ...] = ()
    embeddings: str | None = None
    model: str | None = None
    common: int = 9


#: More specific names first: "Azure OpenAI" is not OpenAI, and "Llama on Groq" is Groq's.
PROVIDERS: Final = (
    Provider("azureChatOpenAI", ("azure openai", "azure"), (), "azureOpenAIEmbeddings", "gpt-5.2"),
    Provider("awsChatBedrock", ("aws bedrock", "bedrock"), (), "AWSBedrockEmbeddings"),
    Provider("chatGoogleVertexAI", ("vertex ai", "vertex"), (), "googlevertexaiEmbeddings", "gemini-3.5-flash"),
    Provider("chatOpenRouter", ("openrouter",), (), None, "openai/gpt-5.4-mini"),
    Provider("groqChat", ("groq",), ("llama",), None, "openai/gpt-oss-120b", 5),
    Provider("chatOllama", ("ollama",), (), "ollamaEmbedding", "llama3.2"),
    Provider("chatTogetherAI", ("together ai", "together"), (), "togetherAIEmbedding",
             "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    Provider("chatFireworks", ("fireworks",)),
    Provider("chatCerebras", ("cerebras",)),
    Provider("chatSambanova", ("sambanova",)),
    Provider("chatHuggingFace", ("hugging face",), (), "huggingFaceInferenceEmbeddings",
             "HuggingFaceH4/zephyr-7b-beta"),
    Provider("chatIBMWatsonx", ("watsonx",), ("granite",), "ibmEmbedding", "ibm/granite-3-8b-instruct"),
    Provider("chatAnthropic", ("anthropic",), ("claude", "sonnet", "haiku", "opus"), common=2),
    Provider("chatGoogleGenerativeAI", ("google ai", "google"), ("gemini",), "googleGenerativeAiEmbeddings", common=3),
    Provider("chatMistralAI", ("mistral ai",), ("mistral", "mixtral", "ministral"), "mistralAIEmbeddings", common=4),
    Provider("chatDeepseek", (), ("deepseek",)),
    Provider("chatCohere", ("cohere",), ("command",), "cohereEmbeddings"),
    Provider("chatPerplexity", ("perplexity",), ("sonar",)),
    Provider("chatXAI", ("x.ai", "xai"), ("grok",), None, "grok-4.3"),
    Provider("chatOpenAI", ("openai", "chatgpt"), ("gpt", "o1", "o3", "o4"), "openAIEmbeddings", common=1),
)  # fmt: skip
BY_CHAT: Final = {provider.chat: provider for provider in PROVIDERS}
#: Family name without a version -> id of the newest model, for servers whose list of models is not known.
NEWEST: Final = {
    "claude-sonnet": "claude-sonnet-4-6",
    "claude-haiku": "claude-haiku-4-5",
    "claude-opus": "claude-opus-4-7",
    "gemini-flash": "gemini-3.5-flash",
    "gemini-pro": "gemini-3.1-pro-preview",
    "mistral-small": "mistral-small-latest",
    "mistral-medium": "mistral-medium-latest",
    "mistral-large": "mistral-large-latest",
}
#: Parts of model names beside families and numbers.
PART: Final = re.compile(
    r".*\d.*|mini|nano|pro|flash|lite|turbo|sonnet|haiku|opus|tiny|small|medium|large|latest|instruct|preview|chat|"
    r"reasoner|plus|codex",
)
#: An id with a size, as in Ollama: llama3.1:8b.
_OLLAMA: Final = re.compile(r"[a-z][\w.-]*:\d{1,3}b\S*", re.IGNORECASE)


def named_model(said: str | None, offer: Offer) -> tuple[Provider | None, str | None]:
    """Find the provider and the model that a form names; the model is None if only a provider is named.

    Raises:
        DeclinedError: no provider is known by that name.
    """
    name = " ".join((said or "").split())
    if not name:
        return None, None
    labels = [(one.label, one.name) for one in offer.store.schemas.values() if one.category == "Chat Models"]
    for label, chat in sorted(labels, key=lambda one: -len(one[0])):
        if f"{name} ".casefold().startswith(f"{label} ".casefold()):
            provider = BY_CHAT.get(chat) or Provider(chat, ())
            return provider, _id_of(name[len(label) :].strip() or chat, provider)
    provider = _provider_of(name)
    if provider is None or provider.chat not in offer.store.schemas:
        raise DeclinedError(text("declined.no_model", model=name))
    return provider, _id_of(name, provider)


def _provider_of(text: str) -> Provider | None:
    folded = fold(text)
    if node := next((one for one in PROVIDERS if folded in (fold(one.chat), _plain(one))), None):
        return node
    if _OLLAMA.fullmatch(text):
        return BY_CHAT["chatOllama"]
    named = next((one for one in PROVIDERS if any(_whole(name).search(text) for name in one.names)), None)
    return named or next((one for one in PROVIDERS if any(_family(name).search(text) for name in one.families)), None)


def _id_of(text: str, provider: Provider) -> str | None:
    if fold(text) in (fold(provider.chat), _plain(provider)):
        return None
    for name in provider.names:
        text = _whole(name).sub(" ", text)
    words = text.split()
    if len(words) <= 1:
        return _spell_id(words[0], provider) if words else None
    parts = [one for one in words if PART.fullmatch(one.casefold()) or any(
             _family(name).match(one) for other in PROVIDERS for name in other.families)]  # fmt: skip
    return _spell_id("-".join(parts).casefold(), provider) if parts else None


def _spell_id(name: str, provider: Provider) -> str | None:
    """The model id in the provider's spelling; None for a family alone."""
    plain = name.casefold()
    if plain in provider.families and provider.chat != "chatAnthropic":
        return None
    if provider.chat == "chatAnthropic":
        plain = name = (plain if plain.startswith("claude") else f"claude-{plain}").replace(".", "-")
        if plain == "claude":
            return None
    name = re.sub(r"^gpt(?=\d)", "gpt-", plain) if plain.startswith("gpt") else name
    return NEWEST.get(plain, name)


def default_provider(offer: Offer, *, with_embeddings: bool) -> Provider:
    """The provider if none is named: the most common one with a stored credential, else OpenAI."""
    # Providers of both come first: one credential instead of two.
    ordered = sorted(PROVIDERS, key=lambda one: (with_embeddings and one.embeddings is None, one.common))
    return BY_CHAT[offer.first([one.chat for one in ordered if one.chat in offer.store.schemas])]


def default_embeddings(offer: Offer) -> str:
    """The embeddings if the chat model's provider has none."""
    return offer.first([one.embeddings for one in sorted(PROVIDERS, key=lambda one: one.common) if one.embeddings])


def _plain(provider: Provider) -> str:
    """The node type without "chat", which most of them contain."""
    return fold(re.sub(r"^chat|Chat", "", provider.chat))


def _whole(name: str) -> re.Pattern[str]:
    said = "[ -]?".join(map(re.escape, name.split()))
    return re.compile(rf"(?<![\w/]){said}(?!\w)", re.IGNORECASE)


def _family(name: str) -> re.Pattern[str]:
    # Matches "gpt4" and "o3", but not "option" or "commander".
    return re.compile(rf"(?<!\w){name}(?![^\W\d])", re.IGNORECASE)
