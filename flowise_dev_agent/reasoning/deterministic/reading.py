"""What a requirement says, read by rules: one frozen record that everything else of the rules works from."""

import re
from dataclasses import dataclass, field
from typing import Literal

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.deterministic import vocabulary as words
from flowise_dev_agent.reasoning.deterministic.components import named_components
from flowise_dev_agent.reasoning.deterministic.fields import Field, find_fields, wants_list, wants_structure
from flowise_dev_agent.reasoning.deterministic.persona import Persona, read_persona
from flowise_dev_agent.reasoning.deterministic.providers import Provider, chat_provider, embeddings_provider, model_id
from flowise_dev_agent.reasoning.deterministic.quantities import Quantities, read_quantities
from flowise_dev_agent.reasoning.deterministic.stages import read_stages, read_topics
from flowise_dev_agent.reasoning.deterministic.text import denied, detect_language, mentioned, mentions, quoted, squeeze

MemoryKind = Literal["buffer", "window", "summary", "summary_buffer"]
_MEMORY_NODES: dict[MemoryKind, str] = {
    "buffer": "bufferMemory",
    "window": "bufferWindowMemory",
    "summary": "conversationSummaryMemory",
    "summary_buffer": "conversationSummaryBufferMemory",
}
_INLINE = re.compile(
    r"\"{3}\s*(.+?)\s*\"{3}|'{3}\s*(.+?)\s*'{3}|`{3}(?:[a-z]*\n)?\s*(.+?)\s*`{3}|<(?:text|document)>\s*(.+?)\s*</"
    r"|(?<!prompt):\s*\"([^\"]{60,})\"|(?<!prompt):\s*[“„]([^“”]{60,})[“”]|(?<!prompt):\s*«\s*([^»]{60,}?)\s*»",
    re.DOTALL | re.IGNORECASE,
)
_AFTER_COLON = re.compile(
    r"\b(?:text|policy|document|content|handbook|faq|richtlinie|handbuch|dokument|política|documento|texto|texte|"
    r"document|politique)\b[^:\n]{0,30}:\s+(.{80,})\Z",
    re.DOTALL | re.IGNORECASE,
)
_URL = re.compile(r"https?://[^\s\"'<>)\]]+")
#: A database has an address, too.
_ADDRESS = re.compile(r"[a-z][a-z0-9+]{1,20}://[^\s\"'<>)\]]+")
_PATH = re.compile(r"(?<![\w/:.])(?:~|\.{1,2})?(?:/[\w.-]+){2,}")
_MAX_WORD = 60
#: Wishes fit into this many characters; what is behind them is not read, so that no text can hold up the event loop.
_MAX_READ = 6_000
_MIN_PASTED = 400


@dataclass(frozen=True)
class Reading:
    """Everything that the rules found in a text. Absent means that the text says nothing about it."""

    text: str
    language: str
    provider: Provider | None = None
    embeddings: Provider | None = None
    model: str | None = None
    memory: str | None = None
    no_memory: bool = False
    #: Names of tool nodes per wish, in order of preference.
    tools: tuple[tuple[str, ...], ...] = ()
    agent: bool = False
    chat: bool = False
    knowledge: bool = False
    besides: bool = False
    topic: str | None = None
    promised: bool = False
    inline_text: str | None = None
    url: str | None = None
    #: The first address of any scheme, and the first path of a file system.
    address: str | None = None
    path: str | None = None
    #: The kind of document loader that the text names.
    loader: str | None = None
    #: Whether the documents are said to be in a vector store already.
    stored: bool = False
    #: Names of several documents or subjects that get a part each, () for one.
    topics: tuple[str, ...] = ()
    #: A chain made for one purpose, such as asking a database.
    chain: str | None = None
    #: Tasks that follow one another, () when there is only one.
    stages: tuple[str, ...] = ()
    #: Of several tasks the one of the node at hand, and whether others come before it.
    task: str | None = None
    later: bool = False
    #: A prompt template given word for word, with its variables.
    prompt_text: str | None = None
    splits: bool = False
    splitter: str = "recursiveCharacterTextSplitter"
    vector_store: str | None = None
    #: Name of an index, a collection or a table at an outside service.
    index_name: str | None = None
    sources: bool = False
    transform: bool = False
    translate_to: str | None = None
    structured: bool = False
    listing: bool = False
    fields: tuple[Field, ...] = ()
    denied_words: tuple[str, ...] = ()
    content_moderation: bool = False
    multi_agent: bool = False
    quantities: Quantities = field(default_factory=Quantities)
    persona: Persona = field(default_factory=Persona)
    #: Node types asked for by name, and names that no node has.
    requested: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    #: A node type is asked for by name, whether it exists or not.
    names_node: bool = False
    names_part: bool = False
    any_bot: bool = False

    @property
    def is_specific(self) -> bool:
        """Whether it says anything that tells this flow from any other."""
        return bool(
            self.provider or self.model or self.memory or self.tools or self.knowledge or self.transform
            or self.structured or self.listing or self.denied_words or self.content_moderation or self.persona.role
            or self.persona.behaviour or self.persona.prompt or self.names_node or self.multi_agent
            or self.quantities.any or self.chain or self.names_part or self.stages
        )  # fmt: skip

    @property
    def is_recognised(self) -> bool:
        """Whether there is anything to build from."""
        return self.is_specific or self.any_bot or self.agent or self.chat


def read(text: str, store: NodeStore | None = None) -> Reading:
    """Read a requirement or a wish for a change. Without `store` no node types are looked up by name."""
    inline = _inline_text(text)
    # The pasted document is data: its words must not be taken for wishes.
    said = (text.replace(inline, " ") if inline else text)[:_MAX_READ]
    quantities = read_quantities(said)
    transform = mentioned(said, words.TRANSFORM) or mentioned(said, words.TRANSLATE)
    structured = wants_structure(said)
    denied_words = _denied_words(said)
    requested, unknown = _named_nodes(said, store)
    tools = _tools(said)
    chain = next((nodes[0] for pattern, nodes in words.CHAINS if mentioned(said, pattern)), None)
    loader = next((nodes[0] for pattern, nodes in words.LOADERS if mentioned(said, pattern)), None)
    # An address that a tool calls is no source of documents.
    page = _url(said) is not None and not any("requests" in name for names in tools for name in names)
    knowledge, topic = _knowledge(said, task=transform or structured, inline=inline is not None, page=page)
    knowledge = knowledge or (loader is not None and not transform)
    return Reading(
        text=said,
        language=detect_language(said),
        provider=chat_provider(said),
        embeddings=embeddings_provider(said),
        model=model_id(said),
        memory=_memory(said, quantities, task=transform),
        no_memory=denied(said, words.MEMORY),
        tools=tools,
        agent=mentioned(said, words.AGENT),
        chat=mentioned(said, words.CHAT),
        knowledge=knowledge and chain is None,
        besides=mentioned(said, words.BESIDES),
        topic=topic,
        promised=bool(words.PROMISE.search(said)),
        inline_text=inline,
        url=_url(said) if page else None,
        address=match.group(0).rstrip(".,;") if (match := _ADDRESS.search(said)) else None,
        path=match.group(0) if (match := _PATH.search(said)) else None,
        loader=loader,
        stored=bool(words.STORED.search(said)),
        topics=read_topics(said),
        chain=chain,
        stages=read_stages(said),
        prompt_text=_prompt_text(said),
        splits=mentioned(said, words.SPLIT) or quantities.chunk_size is not None,
        splitter=next((nodes[0] for pattern, nodes in words.SPLITTERS if mentioned(said, pattern)), Reading.splitter),
        vector_store=next((nodes[0] for pattern, nodes in words.VECTOR_STORES if mentioned(said, pattern)), None),
        index_name=match.group(1) if (match := words.INDEX_NAME.search(said)) else None,
        sources=mentioned(said, words.SOURCES),
        transform=transform,
        translate_to=_target_language(said),
        structured=structured,
        listing=wants_list(said),
        fields=find_fields(said) if structured else (),
        denied_words=denied_words,
        content_moderation=not denied_words and mentioned(said, words.CONTENT_MODERATION),
        multi_agent=mentioned(said, words.MULTI_AGENT),
        quantities=quantities,
        persona=read_persona(said),
        requested=requested,
        unknown=unknown,
        names_node=mentioned(said, words.NAMED_NODE) or bool(requested),
        names_part=mentioned(said, words.PARTS),
        any_bot=mentioned(said, words.ANY_BOT),
    )


def _tools(text: str) -> tuple[tuple[str, ...], ...]:
    """The wishes for tools; one that is named ("Tavily") is what a general one ("web search") means."""
    found: list[tuple[str, ...]] = []
    for pattern, names in words.TOOLS:
        if mentioned(text, pattern) and not any(other[0] in names for other in found):
            found.append(names)
    return tuple(found)


def _memory(text: str, quantities: Quantities, *, task: bool) -> str | None:
    if denied(text, words.MEMORY):
        return None
    for pattern, nodes in words.NAMED_MEMORY:
        if mentioned(text, pattern):
            return nodes[0]
    kind: MemoryKind | None = None
    if quantities.memory_tokens is not None:
        kind = "summary_buffer"
    elif mentioned(text, words.SUMMARY_MEMORY) and not (task and not mentioned(text, words.MEMORY)):
        kind = "summary"
    elif quantities.memory_window is not None or mentioned(text, words.WINDOW_MEMORY):
        kind = "window"
    elif mentioned(text, words.MEMORY) or mentioned(text, words.BUFFER_MEMORY):
        kind = "buffer"
    return _MEMORY_NODES[kind] if kind else None


def _knowledge(text: str, *, task: bool, inline: bool, page: bool) -> tuple[bool, str | None]:
    """Whether answers come from documents, and what they are called."""
    about = next(mentions(text, words.ABOUT_DOCUMENTS), None)
    topic = squeeze(about.group("topic")) if about else None
    if mentioned(text, words.RAG):
        return True, topic
    # Of a task such as "summarise the pasted text" the text is the message, not a source.
    if task:
        return False, None
    asked = page and words.ASKS.search(text) is not None
    return about is not None or inline or asked or bool(words.PROMISE.search(text)), topic


def _inline_text(text: str) -> str | None:
    match = _INLINE.search(text)
    if match:
        return next(group for group in match.groups() if group)
    match = _AFTER_COLON.search(text)
    if match:
        return match.group(1).strip()
    # A wish in the first line and a long text under it.
    wish, _, rest = text.strip().partition("\n")
    about_text = words.ABOUT_DOCUMENTS.search(wish[:_MAX_READ]) or words.RAG.search(wish[:_MAX_READ])
    return rest.strip() if len(rest) >= _MIN_PASTED and about_text else None


def _prompt_text(text: str) -> str | None:
    """A prompt in quotes that is no system prompt."""
    match = words.PROMPT_TEXT.search(text)
    return next(group for group in match.groups() if group).strip() if match else None


def _url(text: str) -> str | None:
    match = _URL.search(text)
    return match.group(0).rstrip(".,;") if match else None


def _target_language(text: str) -> str | None:
    if not mentioned(text, words.TRANSLATE):
        return None
    match = words.TARGET_LANGUAGE.search(text)
    return next(group for group in match.groups() if group) if match else None


def _denied_words(text: str) -> tuple[str, ...]:
    """The words that a message must not hold, when the text says that such messages are refused."""
    for refusal in words.REFUSE.finditer(text):
        behind = text[refusal.end() : refusal.end() + 300]
        # Some languages put the verb last: "Nachrichten mit den Wörtern ... ablehnt".
        before = re.split(r"[.;!?\n]", text[max(0, refusal.start() - 200) : refusal.start()])[-1]
        if not words.DENIED_WORDS.search(behind) and words.DENIED_WORDS.search(before) and quoted(before):
            behind = before
        if not words.DENIED_WORDS.search(behind):
            continue
        found = [word.strip() for word in quoted(behind) if len(word) <= _MAX_WORD]
        if not found:
            listing = words.WORD_LIST.search(behind)
            parts = re.split(r",|\b(?:or|and|oder|und|o|y|ou|et|e)\b", listing.group("list")) if listing else []
            found = [part.strip() for part in parts if part.strip() and len(part.split()) <= 3]
        if found:
            return tuple(dict.fromkeys(found))
    return ()


def _named_nodes(text: str, store: NodeStore | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if store is None:
        return (), ()
    known: list[str] = []
    unknown: list[str] = []
    for match in mentions(text, words.NAMED_NODE):
        name = next(group for group in match.groups() if group)
        schema = _lookup(name, store)
        (known if schema else unknown).append(schema or name)
    known += [match.group(0) for match in mentions(text, words.CAMEL_CASE) if match.group(0) in store.schemas]
    known += [found.name for found in named_components(text, store)]
    return tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown))


def _lookup(name: str, store: NodeStore) -> str | None:
    schema = store.get(name)
    if schema:
        return schema.name
    label = name.casefold()
    return next((item.name for item in store.schemas.values() if item.label.casefold() == label), None)
