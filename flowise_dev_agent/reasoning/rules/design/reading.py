"""What a text says, read once by rules: one frozen record, with the stretches that it was read from."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.rules.design.components import named_components
from flowise_dev_agent.reasoning.rules.design.fields import STRUCTURED, WANTS_LIST, Field, find_fields
from flowise_dev_agent.reasoning.rules.design.providers import (
    Provider,
    chat_provider,
    embeddings_provider,
    model_id,
    note_providers,
)
from flowise_dev_agent.reasoning.rules.design.quantities import Quantities, read_quantities
from flowise_dev_agent.reasoning.rules.language import grammar, words
from flowise_dev_agent.reasoning.rules.language.scan import Scan, Span
from flowise_dev_agent.reasoning.rules.language.text import detect_language, mentioned, quoted, squeeze

#: Kinds of nodes that a stretch asks for, where no type is named.
MEMORY, DOCUMENTS = ("@Memory",), ("@Document Loaders", "@Vector Stores", "@Retrievers")
_PROMPT_FIELDS = ("systemMessagePrompt", "systemMessage", "template", "responsePrompt")
_INLINE = grammar.pattern("reading", "inline")
_AFTER_COLON = grammar.pattern("reading", "after_colon")
_URL = re.compile(r"https?://[^\s\"'<>)\]]+")
#: A database has an address, too.
_ADDRESS = re.compile(r"[a-z][a-z0-9+]{1,20}://[^\s\"'<>)\]]+")
_PATH = re.compile(r"(?<![\w/:.])(?:~|\.{1,2})?(?:/[\w.-]+){2,}")
_GIVEN = grammar.pattern("reading", "given")
_ADDED = grammar.pattern("reading", "added")
_MAX_WORD = 60
#: Wishes fit into this many characters; what is behind them is not searched for structure.
_MAX_READ = 6_000
_MIN_PASTED = 400


@dataclass(frozen=True)
class Reading:
    """Everything that the rules found in a text. Absent means that the text says nothing about it."""

    text: str
    language: str
    spans: tuple[Span, ...] = ()
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
    #: What the documents are called, one for each source.
    topics: tuple[str, ...] = ()
    promised: bool = False
    inline_text: str | None = None
    #: Pages and files to answer from, each with the loader that it takes.
    urls: tuple[str, ...] = ()
    #: The first address of any scheme, and the first path of a file system.
    address: str | None = None
    path: str | None = None
    #: The kinds of document loaders that the text names.
    loaders: tuple[str, ...] = ()
    #: Whether the documents are said to be in a vector store already.
    stored: bool = False
    #: A chain made for one purpose, such as asking a database.
    chain: str | None = None
    #: Prompts given word for word.
    prompt_text: str | None = None
    system_text: str | None = None
    splits: bool = False
    splitter: str = "recursiveCharacterTextSplitter"
    vector_store: str | None = None
    #: Name of an index, a collection or a table at an outside service.
    index_name: str | None = None
    sources: bool = False
    transform: bool = False
    structured: bool = False
    listing: bool = False
    fields: tuple[Field, ...] = ()
    denied_words: tuple[str, ...] = ()
    content_moderation: bool = False
    quantities: Quantities = field(default_factory=Quantities)
    #: Node types asked for by name, and names that no node has.
    requested: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    names_part: bool = False

    @property
    def names_structure(self) -> bool:
        """Whether it says anything about how the flow is made."""
        return bool(
            self.provider or self.model or self.memory or self.tools or self.knowledge or self.transform
            or self.structured or self.listing or self.denied_words or self.content_moderation or self.requested
            or self.unknown or self.quantities.any or self.chain or self.names_part or self.prompt_text
            or self.system_text
        )  # fmt: skip


def read(text: str, store: NodeStore | None = None) -> Reading:
    """Read a requirement or a wish for a change; `text` is normalised. Without `store` no node types are looked up."""
    inline = _inline_text(text)
    # The pasted document is data: its words must not be taken for wishes. Positions stay as they are.
    said = (text.replace(inline, "\x00" * len(inline)) if inline else text)[:_MAX_READ]
    scan = Scan(said)
    if inline:
        scan.note(text.index(inline), text.index(inline) + len(inline), params=["text"])
    found = [*scan.find(_GIVEN, params=_PROMPT_FIELDS), *scan.find(_ADDED, params=_PROMPT_FIELDS)]
    given = next(iter(found), None)
    prompt = next(iter(scan.find(words.PROMPT_TEXT, params=_PROMPT_FIELDS)), None)
    for match in (given, prompt):
        if match:
            # What a prompt says is nobody's wish for a part.
            scan.text = scan.text.replace(_first(match), "\x00" * len(_first(match)))
    plain = scan.text
    quantities = read_quantities(scan)
    task = scan.has(words.TRANSFORM, task=True) | scan.has(words.TRANSLATE, task=True)
    structured = scan.has(STRUCTURED, task=True)
    listing = scan.has(WANTS_LIST, task=True)
    denied_words = _denied_words(scan)
    content = not denied_words and scan.has(words.CONTENT_MODERATION, names=["@Moderation"])
    requested, unknown = _named_nodes(scan, store)
    tools = _tools(scan)
    chain = _first_of(scan, words.CHAINS)
    loaders = tuple(name for pattern, names in words.LOADERS for name in names[:1] if scan.has(pattern, names=names))
    # An address that a tool calls is no source of documents.
    urls = tuple(match.group().rstrip(".,;") for match in _URL.finditer(plain))
    page = bool(urls) and not any("requests" in name for names in tools for name in names)
    for match in _ADDRESS.finditer(plain):
        end = match.start() + len(match.group().rstrip(".,;"))
        scan.note(match.start(), end, params=["url", "repoLink", "@address"])
    for match in _PATH.finditer(plain):
        scan.note(match.start(), match.end(), params=["@address"])
    knowledge, topics = _knowledge(scan, task=task or structured, inline=inline is not None, page=page)
    if "multiPromptChain" in requested and not topics:
        topics = tuple(dict.fromkeys(squeeze(match.group("topic")) for match in words.KIND_OF_QUESTION.finditer(plain)))
    no_memory = any(match for match in words.MEMORY.finditer(plain)) and not scan.has(words.MEMORY, names=MEMORY)
    index = next(iter(scan.find(words.INDEX_NAME, params=["@address"])), None)
    path, address = _PATH.search(plain), _ADDRESS.search(plain)
    provider, embeddings, model = chat_provider(plain), embeddings_provider(plain), model_id(plain)
    note_providers(scan)
    scan.find(words.KEEP, keep=True)
    return Reading(
        text=plain,
        language=detect_language(plain),
        provider=provider,
        embeddings=embeddings,
        model=model,
        memory=None if no_memory else _memory(scan, quantities, task=task),
        no_memory=no_memory,
        tools=tools,
        agent=mentioned(plain, words.AGENT),
        chat=mentioned(plain, words.CHAT),
        knowledge=(knowledge or (bool(loaders) and not task)) and chain is None,
        besides=scan.has(words.BESIDES, keep=True),
        topics=topics,
        promised=scan.has(words.PROMISE, names=DOCUMENTS, params=["@placeholder"]),
        inline_text=inline,
        urls=urls if page else (),
        address=address.group(0).rstrip(".,;") if address else None,
        path=path.group(0) if path else None,
        loaders=loaders,
        stored=scan.has(words.STORED, task=True),
        chain=chain,
        prompt_text=_first(prompt).strip() if prompt else None,
        system_text=_first(given).strip() if given else None,
        splits=scan.has(words.SPLIT, names=["@Text Splitters"]) or quantities.chunk_size is not None,
        splitter=_first_of(scan, words.SPLITTERS) or Reading.splitter,
        vector_store=_first_of(scan, words.VECTOR_STORES),
        index_name=index.group(1) if index else None,
        sources=scan.has(words.SOURCES, params=["returnSourceDocuments"]),
        transform=task,
        structured=structured,
        listing=listing,
        fields=find_fields(plain) if structured else (),
        denied_words=denied_words,
        content_moderation=content,
        quantities=quantities,
        requested=requested,
        unknown=unknown,
        names_part=mentioned(plain, words.PARTS),
        spans=tuple(scan.spans),
    )


def _first(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group)


def _first_of(scan: Scan, table: Iterable[tuple[re.Pattern[str], tuple[str, ...]]]) -> str | None:
    return next((names[0] for pattern, names in table if scan.has(pattern, names=names)), None)


def _tools(scan: Scan) -> tuple[tuple[str, ...], ...]:
    """The wishes for tools; one that is named ("Tavily") is what a general one ("web search") means."""
    found: list[tuple[str, ...]] = []
    for pattern, names in words.TOOLS:
        if scan.has(pattern, names=names) and not any(other[0] in names for other in found):
            found.append(names)
    return tuple(found)


def _memory(scan: Scan, quantities: Quantities, *, task: bool) -> str | None:
    if named := _first_of(scan, words.NAMED_MEMORY):
        return named
    memory, window, buffer = (
        scan.has(pattern, names=MEMORY) for pattern in (words.MEMORY, words.WINDOW_MEMORY, words.BUFFER_MEMORY)
    )
    # "Summarise the conversation" can be a task of its own.
    summary = (memory or not task or quantities.memory_tokens is not None) and scan.has(
        words.SUMMARY_MEMORY, names=MEMORY
    )
    if quantities.memory_tokens is not None:
        return "conversationSummaryBufferMemory"
    if summary:
        return "conversationSummaryMemory"
    if quantities.memory_window is not None or window:
        return "bufferWindowMemory"
    return "bufferMemory" if memory or buffer else None


def _knowledge(scan: Scan, *, task: bool, inline: bool, page: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether answers come from documents, and what they are called."""
    rag = scan.has(words.RAG, names=DOCUMENTS)
    # Of a task such as "summarise the pasted text" the text is the message, not a source.
    about = scan.find(words.ABOUT_DOCUMENTS, names=DOCUMENTS) if rag or not task else []
    found = [squeeze(match.group("topic")) for match in about]
    for match in about:
        end = match.end()
        while more := words.MORE_DOCUMENTS.match(scan.text, end):
            found.append(squeeze(more.group("topic")))
            scan.note(end, more.end(), names=DOCUMENTS)
            end = more.end()
    topics = tuple(dict.fromkeys(found))
    several = dict.fromkeys(squeeze(m.group("topic")).casefold() for m in scan.find(words.ONE_EACH, names=DOCUMENTS))
    if len(several) > 1:
        topics = tuple(several)
    if rag or task:
        return rag, topics
    asked = page and words.ASKS.search(scan.text) is not None
    return bool(about) or inline or asked or words.PROMISE.search(scan.text) is not None, topics


def _inline_text(text: str) -> str | None:
    if match := _INLINE.search(text):
        return _first(match)
    if match := _AFTER_COLON.search(text):
        return match.group(1).strip()
    # A wish in the first line and a long text under it.
    wish, _, rest = text.strip().partition("\n")
    about_text = words.ABOUT_DOCUMENTS.search(wish[:_MAX_READ]) or words.RAG.search(wish[:_MAX_READ])
    return rest.strip() if len(rest) >= _MIN_PASTED and about_text else None


def _denied_words(scan: Scan) -> tuple[str, ...]:
    """The words that a message must not hold, when the text says that such messages are refused."""
    text = scan.text
    for refusal in words.REFUSE.finditer(text):
        start, end = refusal.end(), min(len(text), refusal.end() + 300)
        sentence = re.search(r"[.;!?\n](?:\s|$)", text[start:end])
        end = start + sentence.start() if sentence else end
        # Some languages put the verb last: "Nachrichten mit den Wörtern ... ablehnt".
        begins = max(text.rfind(mark, 0, refusal.start()) for mark in ".;!?\n") + 1
        before = text[begins : refusal.start()]
        if not words.DENIED_WORDS.search(text[start:end]) and words.DENIED_WORDS.search(before) and quoted(before):
            start, end = begins, refusal.start()
        behind = text[start:end]
        announced = words.DENIED_WORDS.search(behind)
        if not announced:
            continue
        found = [word.strip() for word in quoted(behind) if len(word) <= _MAX_WORD]
        last = max((behind.rfind(word) + len(word) + 1 for word in found), default=0)
        if not found and (listing := words.WORD_LIST.search(behind)):
            parts = re.split(r",|\b(?:or|and|oder|und|o|y|ou|et|e)\b", listing.group("list"))
            found = [part.strip() for part in parts if part.strip() and len(part.split()) <= 3]
            last = listing.end()
        if found:
            whole = (min(start, refusal.start()), max(start + last, refusal.end()))
            scan.note(*whole, names=["@Moderation"], params=["denyList"])
            return tuple(dict.fromkeys(found))
    return ()


def _named_nodes(scan: Scan, store: NodeStore | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    known: list[str] = []
    unknown: list[str] = []
    if store is None:
        found = [_first(match) for match in scan.find(words.NAMED_NODE)]
        return (), tuple(found)
    for match in scan.find(words.NAMED_NODE):
        schema = _lookup(_first(match), store)
        (known if schema else unknown).append(schema or _first(match))
        scan.note(match.start(), match.end(), names=[schema] if schema else [])
    for match in words.CAMEL_CASE.finditer(scan.text):
        if match.group() in store.schemas:
            known += [m.group() for m in scan.find(re.compile(rf"\b{match.group()}\b"), names=[match.group()])]
    for named in named_components(scan.text, store):
        known.append(named.name)
        scan.note(named.start, named.end, names=[named.name])
    return tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown))


def _lookup(name: str, store: NodeStore) -> str | None:
    schema = store.get(name)
    if schema:
        return schema.name
    label = name.casefold()
    return next((item.name for item in store.schemas.values() if item.label.casefold() == label), None)
