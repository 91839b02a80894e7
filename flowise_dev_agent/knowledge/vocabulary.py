"""Words of a search: splitting of texts, stop words, and synonyms for Flowise's terms."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

_WORD = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|\d+")
# Vendor spellings that must not be split at capitals.
_VENDOR = re.compile(r"openai|llamaindex|agentflow|sqlite|mongodb", re.IGNORECASE)

#: For `bytes.translate`: letters to lower case, digits as they are, a space for all else.
_LOWERED = bytes(ord(chr(code).lower()) if chr(code).isascii() and chr(code).isalnum() else 32 for code in range(256))

_STOP_WORDS = frozenset(
    _WORD.findall(
        "all also an and any are as at be build by can create customer do does for from has have how in into is it its "
        "make me my new of on or our over people please question same should show so support than that the their them "
        "then they this to use used user using want we what when which will with without wrapper you your"
    )
)

#: Weight of a word found through a synonym, against 1 for a word of the text.
SYNONYM_WEIGHT: Final = 0.85

#: Everyday words -> words of the catalogue. Keys of two words match if both occur.
SYNONYMS: Final[Mapping[str, str]] = {
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
    "web search": "serp brave tavily google search tool",
    "internet": "serp brave tavily search tool",
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
    "pgvector": "postgres vector store",
    "postgresql": "postgres",
    "embed": "embedding",
}


def words(text: str) -> list[str]:
    """Meaningful words in lower case, split at capitals and digits, plural s removed."""
    text = _VENDOR.sub(lambda match: match.group().capitalize(), text)
    found = (_stem(word.lower()) for word in _WORD.findall(text))
    return [word for word in found if len(word) > 1 and word not in _STOP_WORDS]


def expand(said: set[str]) -> set[str]:
    """Synonyms of the words in the catalogue, without the words themselves."""
    meant = {word for parts, words_ in _EXPANSIONS if parts <= said for word in words_}
    return meant - said


def tokens(text: str) -> frozenset[str]:
    """Runs of letters and digits in lower case: much faster than `words` on long texts."""
    return frozenset(text.encode("ascii", "replace").translate(_LOWERED).decode().split())


def known_forms(vocabulary: Iterable[str]) -> dict[str, str]:
    """Tokens with a meaning for a search -> their words: from the vocabulary and from the synonyms."""
    known = {*vocabulary, *(part for parts, _ in _EXPANSIONS for part in parts)}
    return {f"{word}s": word for word in known} | {word: word for word in known}


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


_EXPANSIONS = [
    (frozenset(_stem(part) for part in said.split()), tuple(words(meant))) for said, meant in SYNONYMS.items()
]
