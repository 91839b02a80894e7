"""The words by which a requirement says what it needs, from `vocabulary.toml`, and patterns that are more than words.

Everything is in English, German, Spanish, French and Portuguese.
"""

import re
import tomllib
from importlib.resources import files
from typing import Any

from flowise_dev_agent.reasoning.rules.language import grammar

_TABLE: dict[str, Any] = tomllib.loads(files(__package__ or "").joinpath("vocabulary.toml").read_text("utf-8"))


def _whole(alternatives: list[str]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(alternatives) + r")(?!\w)", re.IGNORECASE)


def _words(name: str) -> re.Pattern[str]:
    return _whole(_TABLE["words"][name])


def _nodes(name: str) -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    """(words, node names in order of preference) of a table, in its order."""
    return tuple((_whole(row["words"]), tuple(row["nodes"])) for row in _TABLE[name])


FUNCTION_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(text.split()) for code, text in _TABLE["function_words"].items()
}
RELATIVES = frozenset(["that", "which", "who", "der", "die", "das", "que", "qui"])
ANDS = frozenset(["and", "und", "y", "e", "et"])
GLUE, CONNECTORS, PREPOSITIONS, LEADS = (
    frozenset(str(_TABLE["lists"][name]).split()) for name in ("glue", "connectors", "prepositions", "leads")
)
EMPTY_ROLE_WORDS = frozenset(str(_TABLE["lists"]["empty_role_words"]).split())
LOOSE_ENDS = frozenset(str(_TABLE["lists"]["loose_ends"]).split())

# --- What is to be done with a flow --------------------------------------------------------------------------------

CHANGE = _words("change")
ADD = _words("add")
ADD_TO = _words("add_to")
THIS_FLOW = _words("this_flow")
CREATE = _words("create")
COPY = _words("copy")
REMOVE = _words("remove")
FLOW = _words("flow")
QUESTION = grammar.pattern("words", "question")

# --- Kinds of flows and parts --------------------------------------------------------------------------------------

AGENT = _words("agent")
ALL_AGENTS = _words("all_agents")
#: Only words that name a conversation; "bot" alone may also be a one-way thing.
#: What is said of things that stay as they are.
KEEP = _words("keep")
ONE_EACH = grammar.pattern("words", "one_each")
KIND_OF_QUESTION = grammar.pattern("words", "kind_of_question")
CHAT = _words("chat")
ANY_BOT = _words("any_bot")
CHAIN = _words("chain")
TEAM = _words("team")
HUMAN = _words("human")
#: What names structure that words alone do not build: kind of it by words.
SIGNALS = tuple((_whole(row["words"]), (row["kind"],)) for row in _TABLE["signals"])
MEMORY = _words("memory")
SUMMARY_MEMORY = _words("summary_memory")
BUFFER_MEMORY = _words("buffer_memory")
WINDOW_MEMORY = _words("window_memory")
NAMED_MEMORY = _nodes("named_memory")
TOOLS = _nodes("tools")
#: Chains that are made for one purpose ("ask our SQL database").
CHAINS = _nodes("chains")
#: Names of parts of a flow: specific enough to build from.
PARTS = _words("parts")

# --- Answers from documents ----------------------------------------------------------------------------------------

RAG = _words("rag")
SPLIT = _words("split")
SPLITTERS = _nodes("splitters")
SOURCES = _words("sources")
VECTOR_STORES = _nodes("vector_stores")
LOADERS = _nodes("loaders")
#: The documents are one ability among others.
BESIDES = _words("besides")
#: "answers questions about our handbook"; the group `topic` is what the documents are called.
ABOUT_DOCUMENTS = grammar.pattern("words", "about_documents")
MORE_DOCUMENTS = grammar.pattern("words", "more_documents")
#: Words by which a page that is named by its address becomes a source of answers.
ASKS = grammar.pattern("words", "asks")
#: Text that is announced and not there yet.
PROMISE = grammar.pattern("words", "promise")
#: The documents were put there before.
STORED = grammar.pattern("words", "stored")
INDEX_NAME = grammar.pattern("words", "index_name")

# --- One text in, one text out -------------------------------------------------------------------------------------

TRANSLATE = _words("translate")
TRANSFORM = _words("transforms")
#: A prompt given word for word; a system prompt is another thing.
PROMPT_TEXT = grammar.pattern("words", "prompt_text")

# --- Moderation ----------------------------------------------------------------------------------------------------

REFUSE = _words("refuse")
CONTENT_MODERATION = _words("content_moderation")
DENIED_WORDS = grammar.pattern("words", "denied_words")
WORD_LIST = grammar.pattern("words", "word_list")

# --- Node types asked for by name ----------------------------------------------------------------------------------

NAMED_NODE = grammar.pattern("words", "named_node")
CAMEL_CASE = re.compile(r"\b[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+\b")
