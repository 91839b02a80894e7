"""Finding node types by what people say: ranked word match over name, label, category and description."""

import math
import re
from collections.abc import Iterable, Mapping

from flowise_dev_agent.patch.schema import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.patch.suggest import fold

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TAG = re.compile(r"<[^>]+>")
# Vendor spellings that splitting at capitals would tear apart.
_SPELLINGS = {"openai": "OpenAI", "OpenAI": "Openai", "LlamaIndex": "Llamaindex", "AgentFlow": "Agentflow"}

_STOP_WORDS = frozenset(
    _WORD.findall(
        "all also an and any are as at be build by can create do does for from has have how in into is it its make me "
        "my new of on or our over people please question same should show so support than that the their them then "
        "they this to use used user using want we what when which will with without wrapper you your"
    )
)

_NAME_WEIGHT, _CATEGORY_WEIGHT, _DESCRIPTION_WEIGHT = 5.0, 2.0, 1.0
_SYNONYM_WEIGHT = 0.7

#: What people say, and the words of the catalogue for it. Keys of two words match when both occur.
_SYNONYMS: Mapping[str, str] = {
    "gpt": "openai chat",
    "chatgpt": "openai chat",
    "claude": "anthropic chat",
    "gemini": "google generative chat",
    "llama": "ollama groq",
    "bot": "conversation chain chat",
    "chatbot": "conversation chain chat",
    "assistant": "conversation agent",
    "memory": "buffer",
    "remember": "memory buffer",
    "history": "memory buffer",
    "window memory": "buffer window memory",
    "last message": "buffer window memory",
    "summarize": "summary",
    "summarise": "summary",
    "rag": "conversational retrieval qa vector store document",
    "knowledge": "retriever document vector",
    "policy": "document text",
    "document": "loader",
    "pasted": "plain text",
    "paste": "plain text",
    "pdf": "pdf file loader",
    "word": "docx",
    "excel": "microsoft excel",
    "spreadsheet": "csv excel sheets",
    "website": "cheerio web scraper",
    "webpage": "cheerio web scraper",
    "crawl": "cheerio playwright fire",
    "url": "cheerio web scraper",
    "web search": "serp brave tavily google search",
    "internet": "serp brave tavily search",
    "chunk": "text splitter recursive",
    "split": "text splitter recursive",
    "math": "calculator",
    "maths": "calculator",
    "arithmetic": "calculator",
    "calculate": "calculator",
    "today": "current date time",
    "date": "current date time",
    "clock": "current date time",
    "tool": "agent",
    "function": "tool custom",
    "api": "requests get post",
    "http": "requests get post",
    "database": "sql",
    "translate": "llm chain prompt template",
    "translation": "llm chain prompt template",
    "extract": "structured output parser",
    "structured": "output parser",
    "json": "structured output parser",
    "list": "csv output parser",
    "refuse": "moderation",
    "block": "moderation",
    "forbidden": "moderation",
    "filter": "moderation",
    "email": "gmail",
    "mail": "gmail",
    "vector": "store",
    "embed": "embedding",
}


class SearchIndex:
    """An inverted index over a catalogue; built once, read by any number of searches."""

    def __init__(self, schemas: Iterable[NodeSchema]) -> None:
        self._schemas = {schema.name: schema for schema in schemas}
        self._postings: dict[str, dict[str, float]] = {}
        self._words: dict[str, str] = {}
        for schema in self._schemas.values():
            weights: dict[str, float] = {}
            for text, weight in (
                (f"{schema.name} {schema.label}", _NAME_WEIGHT),
                (schema.category, _CATEGORY_WEIGHT),
                (_TAG.sub(" ", schema.description), _DESCRIPTION_WEIGHT),
            ):
                for word in words(text):
                    weights[word] = max(weights.get(word, 0.0), weight)
            for word, weight in weights.items():
                self._postings.setdefault(word, {})[schema.name] = weight
            # What a name says in few words it says more exactly.
            self._words[schema.name] = fold(schema.label)
        self._name_lengths = {name: len(set(words(f"{name} {s.label}"))) for name, s in self._schemas.items()}

    def search(self, text: str, limit: int, kind: str | None) -> list[NodeSchema]:
        """Best first, at most ``limit``; with ``kind`` only nodes that run in flows of that type."""
        scores: dict[str, float] = {}
        for word, weight in _query(text).items():
            postings = self._postings.get(word)
            if not postings:
                continue
            rarity = math.log(1 + len(self._schemas) / len(postings))
            for name, field_weight in postings.items():
                scores[name] = scores.get(name, 0.0) + weight * rarity * field_weight
        folded = fold(text)
        spoken = {fold(piece) for piece in text.split()}
        for name, schema in self._schemas.items():
            if fold(name) in spoken or folded in (fold(name), self._words[name]):
                scores[name] = scores.get(name, 0.0) + 100.0
            elif name not in scores:
                continue
            scores[name] /= 1 + 0.15 * self._name_lengths[name]
            if schema.deprecated:
                scores[name] *= 0.4
        ranked = sorted(
            (name for name in scores if kind is None or runs_in(self._schemas[name], kind)),
            key=lambda name: (-scores[name], name),
        )
        return [self._schemas[name] for name in ranked[:limit]]


def runs_in(schema: NodeSchema, kind: str) -> bool:
    """True when nodes of this type work in flows of type CHATFLOW, AGENTFLOW or MULTIAGENT."""
    return KIND_OF_CATEGORY.get(schema.category, "CHATFLOW") == kind


def words(text: str) -> list[str]:
    """Lower-case words that say something, split at capitals and digits, plural s removed."""
    for vendor, spelling in _SPELLINGS.items():
        text = text.replace(vendor, spelling)
    found = (_stem(word.lower()) for word in _WORD.findall(text))
    return [word for word in found if len(word) > 1 and word not in _STOP_WORDS]


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _query(text: str) -> dict[str, float]:
    spoken = dict.fromkeys(words(text), 1.0)
    for said, meant in _SYNONYMS.items():
        if all(_stem(part) in spoken for part in said.split()):
            for word in words(meant):
                spoken.setdefault(word, _SYNONYM_WEIGHT)
    return spoken
