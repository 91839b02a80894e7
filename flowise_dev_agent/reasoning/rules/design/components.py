"""Node types that a text names by their titles, in whatever spelling: "multi-query retriever", "InMemory Cache"."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.reasoning.rules.language.text import is_negated, quoted_spans

_TOKEN = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: What a title ends with and people leave out: "Cohere rerank" is the Cohere Rerank Retriever.
_KIND_WORDS = frozenset({"retriever", "tool", "chain", "memory", "splitter", "parser", "template", "mcp", "agent"})
#: Titles that are everyday words: they name a node only together with what else is said, see `vocabulary.toml`.
_EVERYDAY = frozenset(
    {
        "plaintext", "textfile", "fileloader", "documentstore", "vectorstore", "chatprompt", "structuredoutput",
        "agent", "llm", "start", "end", "loop", "state", "tool", "retriever", "condition", "worker", "http",
        "iteration",
        "apiloader", "jsonfile", "csvfile", "pdffile", "epubfile", "folderwithfile", "webscraper", "websearch",
        "customfunction", "chatflow", "documentstorevector", "bravesearch", "postgresql", "searchapi", "openapi",
        "agentmemory", "conversationalagent", "conversationsummary", "agentas", "queryengine", "jira", "googledoc",
    }
)  # fmt: skip
_MOST_TOKENS = 6


@dataclass(frozen=True)
class Named:
    """A node type with the stretch of the text that names it."""

    name: str
    start: int
    end: int


def named_components(text: str, store: NodeStore) -> list[Named]:
    """What the text asks for, in order; longest titles first. What is negated or stands in quotes is left out."""
    return [found for found in _occurrences(text, store) if not is_negated(text, found.start, found.end)]


def _occurrences(text: str, store: NodeStore) -> Iterator[Named]:
    lexicon = _lexicon(store)
    quotes = quoted_spans(text)
    tokens = [(match.start(), match.end(), _folded(match.group())) for match in _TOKEN.finditer(text)]
    position = 0
    while position < len(tokens):
        for length in range(min(_MOST_TOKENS, len(tokens) - position), 0, -1):
            start, end = tokens[position][0], tokens[position + length - 1][1]
            name = lexicon.get("".join(token for _, _, token in tokens[position : position + length]))
            # A full stop between two words ends what they could name together.
            if name and not re.search(r"[.;:!?,\n]\s", text[start:end]):
                if not any(opening < start < closing for opening, closing in quotes):
                    yield Named(name, start, end)
                position += length
                break
        else:
            position += 1


@lru_cache(maxsize=8)
def _lexicon(store: NodeStore) -> Mapping[str, str]:
    """Folded title -> node name. Of a title that several types have, none counts."""
    full: dict[str, str] = {}
    short: dict[str, str] = {}
    for schema in store.schemas.values():
        if not _is_named(schema):
            continue
        words = [_folded(word) for word in _TOKEN.findall(_CAMEL.sub(" ", schema.label))]
        _enter(full, "".join(words), schema)
        if words[-1] in _KIND_WORDS and len(words) > 2 and not schema.deprecated:
            _enter(short, "".join(words[:-1]), schema)
    return {key: name for key, name in {**short, **full}.items() if name and key not in _EVERYDAY}


def _enter(lexicon: dict[str, str], key: str, schema: NodeSchema) -> None:
    lexicon[key] = "" if key in lexicon else schema.name


def _is_named(schema: NodeSchema) -> bool:
    # Providers are named by their houses, see `providers`; one word alone ("Jira") may be anything.
    if schema.category in ("Chat Models", "LLMs", "Utilities") or "LlamaIndex" in schema.name:
        return False
    many = len(_CAMEL.sub(" ", schema.label).split()) > 1 or schema.category == "Tools"
    return many and schema.category not in KIND_OF_CATEGORY


def _folded(word: str) -> str:
    word = word.lower()
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
