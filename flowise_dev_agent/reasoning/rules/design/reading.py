"""What a text says, read once by rules: one frozen record, with the stretches that it was read from."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.rules.design import details, providers
from flowise_dev_agent.reasoning.rules.design.clauses import Clause, clauses, leaves
from flowise_dev_agent.reasoning.rules.design.prompt import ungreeted
from flowise_dev_agent.reasoning.rules.language import lexicon
from flowise_dev_agent.reasoning.rules.language import text as texts
from flowise_dev_agent.reasoning.rules.language.lexicon import (
    NodeTable,
    constants,
    pattern,
    patterns,
    table,
    words,
    wordset,
)
from flowise_dev_agent.reasoning.rules.language.senses import HALF, LITTLE, SURE
from flowise_dev_agent.reasoning.rules.language.text import URL, Scan, Span, detect_language, first_group

#: Kinds of nodes that a stretch asks for, where no type is named.
_MEMORY, _DOCUMENTS = ("@Memory",), ("@Document Loaders", "@Vector Stores", "@Retrievers")
DOCUMENTS, SHOWN = frozenset(_DOCUMENTS), frozenset({"returnSourceDocuments"})
_PROMPT_FIELDS = "systemMessagePrompt systemMessage template responsePrompt"
#: A machine of one's own, by its number or its port: no page of the web.
_SERVER = re.compile(r"https?://(?:localhost|\d+\.\d+\.\d+\.\d+|[^/:\s]+:\d+)(?![\w.-])")
#: A database has an address, too.
_ADDRESS = re.compile(r"[a-z][a-z0-9+]{1,20}://[^\s\"'<>)\]]+(?<![.,;])")
_AGENTFLOW = re.compile(r"(?i)agenten?[ -]?flow")
_PATH = re.compile(r"(?<![\w/:.])(?:~|\.{1,2})?(?:/[\w.-]+){2,}(?<![.,;])")
_CAMEL_CASE = re.compile(r"\b[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+\b")
_ABOUT, _MORE, _EACH = (pattern("words", name) for name in ("about_documents", "more_documents", "one_each"))
_PROMISE, _DENIED, _NAMED = (pattern("words", name) for name in ("promise", "denied_words", "named_node"))
#: Tools that are made of another part of the flow.
_VECTORS = frozenset(constants("kinds")["vectors"])
_KEPT = frozenset(name for _, names in table("named_memory") for name in names)
_WRAPPERS = frozenset({"retrieverTool", "chainTool"})
#: Quotations that follow one another as a list.
_QUOTE = r"(?:[\"“„«]|(?<!\w)')[^\"“”„«»'\n]{1,60}(?:[\"”“»]|'(?!\w))"
_LISTED = re.compile(rf"(?i){_QUOTE}(?:(?:\s?,|\s(?:or|and|oder|und|o|y|ou|et|e|of|en|lub|albo|i)\b)+\s?{_QUOTE})*")
_SENTENCES = re.compile(r"(?:[^.;!?\n]|[.;!?](?!\s|$))+")
#: What a remark must not hold: a number, a quotation, an address.
_MORE_PATHS = re.compile(rf"(?:,|\s?(?:{'|'.join(wordset('ands'))})(?=\s))+\s?(?P<path>/[\w-]+(?:/[\w-]+)*)(?![\w/])")
_KEY = re.compile(
    r"(?i)(?<!\w)(?:keys?|tokens?|credentials?|passwor[dt]\w*|\w*schlüssel|clés?|claves?|chiav[ei]|chaves?|sleutels?|"
    r"klucz\w*)(?!\w)"
)
#: A name within a sentence.
_NAME = re.compile(r"(?<=[\w,]\s)[A-ZÀ-Ž][\w'’]{2,}")
_FACT = re.compile(r"[\d\"“”„«»@:\x00]|\w[./]\w")
#: What is promised comes at once, in lines of its own.
_FOLLOWS = re.compile(r"[^.!?\n]{0,120}:\n(?:.*\n?){0,3}.{40,}")
_WHO, _BOT = pattern("reading", "who_asks"), re.compile(r"(?i)bot|chat|assist|flow")
_ASSISTS = re.compile(r"(?i)bot[as]?(?!\w)|as+ist")
_BEHAVES = pattern("prompt", "behaves")
#: "Like 0.3", and not "in 3 languages".
_ENDS_BARE = re.compile(r"(?:[^\W\d]+\s){0,2}[\d\s.,/]+")
_PAGE, _PAGE_NUMBER, _FEW = pattern("reading", "page"), pattern("reading", "page_number"), 7
_JSON, _NULL = (re.compile(rf"(?i)(?<!\w){one}(?!\w)") for one in ("json", "null"))
#: What the second reader hears -> the numbers that are said of it.
_HEARD = {name: pattern("heard", name) for name in ("memory_window", "splitter", "temperature", "top_k")}
#: A number that takes the place of another one is read by what the flow holds.
_MOVED = (pattern("values", "range"), *patterns("values", "exchange"))
#: Wishes fit into this many characters; what is behind them is not searched for structure.
_MAX_READ = 6_000


@dataclass(frozen=True)
class Reading:
    """Everything that the rules found in a text. Absent means that the text says nothing about it."""

    text: str
    language: str
    spans: tuple[Span, ...] = ()
    provider: providers.Provider | None = None
    embeddings: providers.Provider | None = None
    model: str | None = None
    memory: str | None = None
    no_memory: bool = False
    #: Names of tool nodes per wish, in order of preference.
    tools: tuple[tuple[str, ...], ...] = ()
    #: Addresses that the agent asks.
    requests: tuple[details.Request, ...] = ()
    agent: bool = False
    chat: bool = False
    knowledge: bool = False
    #: The documents are one ability among others.
    besides: bool = False
    #: What the documents are called, one for each source.
    topics: tuple[str, ...] = ()
    promised: bool = False
    inline_text: str | None = None
    #: Pages to answer from.
    urls: tuple[str, ...] = ()
    #: Where the server of the model is.
    model_url: str | None = None
    #: The first address of any scheme, and the first path of a file system.
    address: str | None = None
    path: str | None = None
    #: The kinds of document loaders that the text names; one for each file of a new flow.
    loaders: tuple[str, ...] = ()
    #: (loader, name) of each file that is named.
    files: tuple[tuple[str, str], ...] = ()
    #: Whether the documents are said to be in a vector store already.
    stored: bool = False
    #: Prompts given word for word.
    prompt_text: str | None = None
    system_text: str | None = None
    #: The prompt is to be added to the one that is there.
    adds: bool = False
    splits: bool = False
    splitter: str = "recursiveCharacterTextSplitter"
    vector_store: str | None = None
    #: (what it is, its name) of an index, a collection, a namespace or a table at an outside service.
    places: tuple[tuple[str, str], ...] = ()
    sources: bool | None = None
    transform: bool = False
    structured: bool = False
    fields: tuple[details.Field, ...] = ()
    denied_words: tuple[str, ...] = ()
    content_moderation: bool = False
    #: Quantity -> number.
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    #: Node types asked for by name, and names that no node has.
    requested: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def denied(self) -> frozenset[str]:
        """Node types that are said not to be wanted."""
        return frozenset(name for one in self.spans if one.denied for name in one.names)


def read(text: str, store: NodeStore | None = None, *, new: bool = False, has_agent: bool = False) -> Reading:
    """Read a requirement (`new`) or a wish for a change of a flow, which may have an agent; `text` is normalised.
    Without `store` no node types are looked up."""
    inline = _inline_text(text)
    # The pasted document is data: its words must not be taken for wishes. Positions stay as they are.
    scan = Scan((text.replace(inline, "\x00" * len(inline)) if inline else text)[:_MAX_READ])
    if inline:
        scan.spans.append(Span(text.index(inline), text.index(inline) + len(inline), params=frozenset({"text"})))
    given, own, added = (scan.find(pattern("reading", name), (), _PROMPT_FIELDS) if new or name != "own" else []
                         for name in ("given", "own", "added"))  # fmt: skip
    begins = re.split(r"[.;!?\n]", scan.text[max(0, given[0].start() - 60) : given[0].start()] if given else "")[-1]
    adds = bool(added) or bool(words("add").search(begins) and not words("change").search(begins))
    prompt = scan.find(pattern("words", "prompt_text"), (), _PROMPT_FIELDS)
    # Braces are what a template fills in.
    given = [*given, *own, *added, *(one for one in prompt if new and "{" not in one[0])]
    for match in [*given[:1], *prompt[:1]]:
        # What a prompt says is nobody's wish for a part.
        scan.text = scan.text.replace(first_group(match), "\x00" * len(first_group(match)))
    plain = scan.text
    numbers = details.read_numbers(scan)
    _hear_numbers(scan, numbers, change=not new)
    crawl = lexicon.concept("parts", "crawl")
    follows, only = scan.find(crawl, ["@Document Loaders"]), scan.find(pattern("reading", "only_page"), params="limit")
    single = only or (pattern("reading", "one_page").search(plain) and not follows)
    if single or len(follows) < len([*crawl.finditer(plain)]):
        numbers.setdefault("pages", 1)
    # What is to be done in one case is a part of a conversation: "if he writes Arabic, translate it below".
    tasks = [one for name in ("transforms", "translate") for one in scan.find(words(name), task=True)]
    task = any(not pattern("facts", "in_case").search(plain[: one.start()]) for one in tasks)
    # Who waits for an answer and goes on from it talks: "corrects it, then asks the next".
    asks = any(one.search(plain) for one in (words("rag"), _ABOUT))
    task = (task or (texts.mentioned(plain, words("pasted")) and not asks)) and not texts.mentioned(
        plain, words("dialogue")
    )
    structured = any(scan.find(one, task=True) for one in (details.STRUCTURED, details.EXTRACTS))
    # Fields that are listed, and a word for their form that both readers know.
    listed = new and not structured and re.search(r"(?i)(?<!\w)json(?!\w)", plain) and details.find_fields(plain)
    structured = structured or bool(listed and any("json_fields" in one.asks() for one in clauses(plain, change=False)))
    if structured and _JSON.search(plain) and texts.mentioned(plain, _NULL):
        # Flowise's parser takes no null: the JSON is asked for in the prompt alone.
        task, structured = True, False
    denied_words = _denied_words(scan)
    content = not denied_words and _has(scan, "content_moderation", ["@Moderation"])
    requested, unknown, named_tools = _named_nodes(scan, store)
    tools = tuple(dict.fromkeys([*_tools(scan), *named_tools]))
    loaders = tuple(names[0] for looked_for, names in table("loaders") if scan.find(looked_for, names))
    # "A folder with PDFs" is one loader.
    inside = {*constants("files").values()} if "folderFiles" in loaders else set[str]()
    loaders = tuple(one for one in loaders if one not in inside)
    named = dict.fromkeys(one[0] for one in pattern("change", "file").finditer(plain))
    files = tuple((constants("files")[name.rpartition(".")[2].casefold()], name) for name in named)
    kinds = [kind for kind, _ in files] if new else []
    loaders = tuple(kind for kind in dict.fromkeys([*loaders, *kinds]) for _ in range(max(1, kinds.count(kind))))
    agent, chat = (texts.mentioned(plain, words(name)) for name in ("agent", "chat"))
    # Any bot that looks something up talks, too; what posts something may be a step.
    answers = agent or has_agent or (new and (chat or (_ASSISTS.search(plain) and "POST" not in plain)))
    requests = details.requests_of(scan) if answers and not _AGENTFLOW.search(plain) else ()
    tools = tuple(names for names in tools if not (requests and "requests" in names[0]))
    # An address that a tool calls is no source of documents.
    called = any("requests" in name for names in tools for name in names)
    found = [] if called else [one for match in URL.finditer(plain) for one in _with_paths(match)]
    before = {url: plain[:start] for url, start in reversed(found)}
    # An address that people are sent to is a word of the answer.
    sent = {url for url, said in before.items() if pattern("words", "sent_to").search(said)}
    model_url = next((url for url, said in found if _SERVER.match(url) and _is_model(plain[:said], url)), None)
    # An address is used once: for the model, for the store that was named before it, or as a page.
    stores = {url for url, said in before.items() if any(one.search(said) for one, _ in table("vector_stores"))
              and (_SERVER.match(url) or not (loaders or len(found) > 1))}  # fmt: skip
    asked = {match.group() for one in requests if (match := URL.match(one.url))}
    urls = tuple(url for url, _ in found if url != model_url and url not in stores | sent | asked)
    if model_url:
        scan.find(re.compile(re.escape(model_url)), params="baseUrl basepath")
    addresses, paths = ([match.group() for match in scan.find(one, params="@address")] for one in (_ADDRESS, _PATH))
    scan.spans = [one for one in scan.spans if plain[one.start : one.end] not in sent]
    promised = not task and _promise(scan)
    knowledge, topics = _knowledge(
        scan, task=task or structured, inline=inline is not None, page=bool(urls), promised=promised
    )
    known, said = knowledge or bool(loaders), leaves([*clauses(plain, change=not new)])
    pages = [one for one in said if known and names_page(one)]
    scan.spans += [Span(*one.words, params=SHOWN) for one in pages if len(one.said.split()) < _FEW]
    no_memory = bool(words("memory").search(plain)) and not _has(scan, "memory", _MEMORY)
    index = scan.find(pattern("words", "index_name"), params="@address")
    providers.note_providers(scan)
    for aside in (words("keep"), *patterns("reading", "aside")):
        scan.find(aside, keep=True)
    scan.spans += _remarks(scan) if new else ()
    memory = None if no_memory else _memory(scan, numbers, task=task)
    # A database that keeps the conversation keeps no documents.
    # "Redis" beside a memory in Redis is no vector store.
    kept = (memory or "").casefold() if memory in _KEPT else ""
    rows = ((said, names) for said, names in table("vector_stores") if names[0].casefold() not in kept)
    store_named = _first_of(scan, tuple(rows))
    index += scan.find(pattern("words", "bare_index"), params="@address") if store_named else []
    return Reading(
        text=plain, language=detect_language(plain), provider=providers.chat_provider(plain),
        model=providers.model_id(plain), embeddings=providers.embeddings_provider(plain),
        memory=memory, no_memory=no_memory, tools=tools, requests=requests,
        agent=agent, chat=chat,
        knowledge=(knowledge or (bool(loaders or store_named in _VECTORS) and not task)), topics=topics,
        besides=bool(scan.find(words("besides"), keep=True)), inline_text=inline, urls=urls, model_url=model_url,
        promised=promised, path=next(iter(paths), None),
        loaders=loaders, files=files,
        address=next((one for one in addresses if one not in {model_url, *urls, *sent, *asked}), None),
        stored=bool(scan.find(pattern("words", "stored"), task=True)), adds=adds,
        prompt_text=first_group(prompt[0]).strip() if prompt else None, transform=task, structured=structured,
        system_text=first_group(given[0]).strip() if given else None, denied_words=denied_words,
        splits=_has(scan, "split", ["@Text Splitters"]) or "chunk_size" in numbers, numbers=numbers,
        splitter=_first_of(scan, table("splitters")) or Reading.splitter, content_moderation=content,
        vector_store=store_named,
        places=tuple((one["kind"].casefold(), first_group(one, 1)) for one in index),
        # Without documents a source is something to be said.
        sources=_has(scan, "sources", task=not (knowledge or loaders), params=" ".join(SHOWN)) or bool(pages) or None,
        fields=details.find_fields(plain) if structured else (), unknown=unknown, spans=tuple(scan.spans),
        requested=requested,
    )  # fmt: skip


def _hear_numbers(scan: Scan, numbers: dict[str, float], *, change: bool) -> None:
    """A number that no pattern took, or two as in "800 / 120", by what the second reader hears in its clause, or in the
    sentence of a clause that is hardly more than a number."""
    said, quotes = [*clauses(scan.text, change=change)], texts.quoted_spans(scan.text)
    taken = [Span(*one.span()) for looked_for in _MOVED for one in looked_for.finditer(scan.text)]
    taken += [one for one in scan.spans if one.params]
    for one in leaves(said):
        whole = next(each for each in said if each.whole and each.start <= one.start < each.end)
        few = _ENDS_BARE.fullmatch(one.said) is not None
        names = [name for each in (one, whole)[: 1 + few] for name in each.asks()[:1] if each.sense.told < HALF]
        heard = next((name for name in names if name in _HEARD and name in whole.sense.concepts), "")
        places = _HEARD[heard].finditer(scan.text, one.start, one.end) if heard else ()
        free = [each for each in places if not any(span.meets(*each.span()) for span in taken)]
        read = {name: each for name, each in free[0].groupdict().items() if each} if len(free) == 1 else {}
        if read and not numbers.keys() & read:
            numbers |= {name: details.quantity(name, each) for name, each in read.items()}
            params = [field for name in read for field in constants("quantities")[name]]
            # What else is said of it in the sentence, and what it is called there, is done.
            scan.spans += [Span(*each.words, params=frozenset(params)) for each in leaves(said) if each is one
                           or (whole.start <= each.start < whole.end and heard in each.asks())]  # fmt: skip
            scan.spans += [Span(*each, keep=True) for each in quotes if whole.start <= each[0] < one.start]


def names_page(said: Clause) -> bool:
    """Whether answers are to name the page that they are from. The sources know it; what the model reads has none."""
    heard = "show_sources" in said.sense.concepts and said.sense.told < SURE
    return bool(_PAGE_NUMBER.search(said.said) or (heard and _PAGE.search(said.said)))


def _with_paths(match: re.Match[str]) -> list[tuple[str, int]]:
    """An address and where it is, with the others of its host that are listed by their paths: "https://a.example/b, /c
    and /d"."""
    host = re.match(r"https?://[^/\s]+", match[0])
    paths, place = list[str](), match.end()
    while host and (more := _MORE_PATHS.match(match.string, place)):
        paths.append(f"{host[0]}{more['path']}")
        place = more.end()
    return [(address, match.start()) for address in (match[0], *paths)]


def _remarks(scan: Scan) -> list[Span]:
    """What asks for nothing and tells the bot nothing, with nothing read from it: sentences, and asides in others."""
    found = list[Span]()
    said = [*clauses(scan.text, change=False)]
    # A sentence goes where each clause of it may.
    facts = [one for one in leaves(said) if one.sense.idle <= HALF]
    for one in (one for one in said if not any(one.start <= fact.start < one.end for fact in facts)):
        if not one.whole and one.sense.aside <= HALF:
            continue
        read = any(span.meets(one.start, one.end) and not span.task for span in scan.spans)
        # Who asks, and that a bot is wanted, says what it is for.
        mine = ungreeted(one.said)
        told = any(form.match(mine) for form in (_WHO, _BEHAVES)) or _FACT.search(mine) or _BOT.search(mine)
        # In German any noun may stand there.
        told = told or (detect_language(scan.text) != "de" and _NAME.search(mine))
        # A question is one to whoever builds.
        asks = scan.text[: one.end].rstrip().endswith("?") and one.sense.told < 1 - SURE
        if one.sense.idle > (HALF if asks else SURE) and not (read or told or one.sense.told > LITTLE):
            found.append(Span(*one.words, keep=True, aside=True))
    return found


def _is_model(before: str, url: str) -> bool:
    """Whether a model is what was named last, and not a store that has an address, too; or its port is that of one."""
    model = max((start for start, _ in providers.chat_providers(before)), default=-1)
    named = model >= 0 and not any(one.search(before, model) for one, _ in table("vector_stores"))
    return named or providers.MODEL_SERVER.match(url) is not None


def _has(scan: Scan, name: str, names: Sequence[str] = (), *, params: str = "", task: bool = False) -> bool:
    return bool(scan.find(words(name), tuple(names), params, task=task))


def _first_of(scan: Scan, rows: NodeTable) -> str | None:
    return next((names[0] for looked_for, names in rows if scan.find(looked_for, names)), None)


def _tools(scan: Scan) -> tuple[tuple[str, ...], ...]:
    """The wishes for tools; one that is named ("Tavily") is what a general one ("web search") means."""
    found: list[tuple[str, ...]] = []
    for looked_for, names in table("tools"):
        if scan.find(looked_for, names) and not any(other[0] in names for other in found):
            found.append(names)
    return tuple(found)


def _memory(scan: Scan, numbers: Mapping[str, float], *, task: bool) -> str | None:
    if named := _first_of(scan, table("named_memory")):
        return named
    memory, window, buffer = (_has(scan, name, _MEMORY) for name in ("memory", "window_memory", "buffer_memory"))
    # "Summarise the conversation" can be a task of its own; to keep a summary of it is none.
    if scan.find(pattern("reading", "kept"), _MEMORY) or (
        (memory or not task) and scan.find(lexicon.concept("parts", "summary_memory"), _MEMORY)
    ):
        return "conversationSummaryMemory"
    if "memory_window" in numbers or window:
        return "bufferWindowMemory"
    return "bufferMemory" if memory or buffer else None


def _knowledge(scan: Scan, *, task: bool, inline: bool, page: bool, promised: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether answers come from documents, and what they are called."""
    rag = _has(scan, "rag", _DOCUMENTS)
    # Of a task such as "summarise the pasted text" the text is the message, not a source.
    about = scan.find(_ABOUT, _DOCUMENTS) if rag or not task else []
    found = [texts.squeeze(match.group("topic")) for match in about]
    for match in about:
        end = match.end()
        while more := _MORE.match(scan.text, end):
            found.append(texts.squeeze(more.group("topic")))
            scan.spans.append(Span(end, more.end(), frozenset(_DOCUMENTS)))
            end = more.end()
    several = {texts.squeeze(one["topic"]).casefold(): one.span() for one in _EACH.finditer(scan.text)}
    scan.spans += [Span(*place, DOCUMENTS) for place in several.values() if len(several) > 1]
    topics = tuple(several if len(several) > 1 else dict.fromkeys(found))
    if rag or task:
        return rag, topics
    asked = page and any(pattern("words", name).search(scan.text) for name in ("asks", "reads_page"))
    return bool(about) or inline or asked or promised, topics


def _promise(scan: Scan) -> bool:
    """Whether a text is promised that is still to come; not where it follows: "I paste what it has to know: ..."."""
    found = scan.find(_PROMISE, _DOCUMENTS, "@placeholder")
    # "I'll fill in the key myself" promises no text.
    follows = {one.start() for one in found if _FOLLOWS.match(scan.text, one.start()) or _KEY.search(one[0])}
    scan.spans = [one for one in scan.spans if not (one.start in follows and "@placeholder" in one.params)]
    return len(found) > len(follows)


def _inline_text(text: str) -> str | None:
    """A text that the wish calls one, and gives."""
    match = pattern("reading", "inline").search(text)
    return first_group(match).strip() if match else None


def _denied_words(scan: Scan) -> tuple[str, ...]:
    """The words that a message must not hold, when a sentence says that such messages are refused."""
    for sentence in _SENTENCES.finditer(scan.text):
        refusal, denied = words("refuse").search(sentence[0]), _DENIED.search(sentence[0])
        if refusal and denied and (listed := _LISTED.search(sentence[0], denied.end())):
            start, end = min(refusal.start(), denied.start()), max(refusal.end(), listed.end())
            place = (sentence.start() + start, sentence.start() + end)
            scan.spans.append(Span(*place, frozenset({"@Moderation"}), frozenset({"denyList"})))
            return tuple(dict.fromkeys(one[1:-1].strip() for one in re.findall(_QUOTE, listed.group())))
    return ()


def _named_nodes(
    scan: Scan, store: NodeStore | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str], ...]]:
    """(node types, names that no node has, tools named by their titles)."""
    tools, known, unknown = list[tuple[str]](), list[str](), list[str]()
    for match in scan.find(_NAMED):
        name = first_group(match)
        schema = _lookup(name, store) if store else None
        (known if schema else unknown).append(schema or name)
        scan.spans.append(Span(*match.span(), frozenset([schema] if schema else [])))
    if store is not None:
        for match in _CAMEL_CASE.finditer(scan.text):
            if match.group() in store.schemas:
                known += [m.group() for m in scan.find(re.compile(rf"\b{match.group()}\b"), [match.group()])]
        for name, start, end in details.named_components(scan.text, store):
            if store.schemas[name].category == "Tools" and name not in _WRAPPERS:
                tools.append((name,))
            else:
                known.append(name)
            scan.spans.append(Span(start, end, frozenset({name})))
    return tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown)), tuple(tools)


def _lookup(name: str, store: NodeStore) -> str | None:
    known, same = store.get(name), (one for one in store.schemas.values() if one.label.casefold() == name.casefold())
    return known.name if known else next((one.name for one in same), None)


def tool_named(name: str, store: NodeStore) -> tuple[str, ...]:
    """The node types that a name means: a type, a title, or words as in a requirement."""
    found = _lookup(name, store)
    return (found,) if found else next(iter(read(texts.squeeze(f"an agent with {name}"), store).tools), ())
