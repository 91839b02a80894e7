"""Details that a text gives: numbers, the fields of an answer, node types by their titles."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from urllib.parse import parse_qsl, unquote

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.reasoning.rules.language import lexicon
from flowise_dev_agent.reasoning.rules.language.lexicon import BEGINS, ENDS, constants, pattern, patterns, wordset
from flowise_dev_agent.reasoning.rules.language.text import Scan, Span, first_group, is_negated, quoted_spans, to_number

# --- Numbers ----------------------------------------------------------------------------------------------------

#: "A low temperature" names no number.
LOW, _LOW = pattern("quantities", "low"), 0.2


def read_numbers(scan: Scan) -> dict[str, float]:
    """Quantity -> number; of contradicting ones the last counts."""
    read = [(name, match, set(fields)) for name, fields in constants("quantities").items()
            for one in patterns("quantities", name) for match in scan.find(one, params=" ".join(fields))]  # fmt: skip
    found: dict[str, float] = {}
    for name, match, _ in sorted(read, key=lambda item: item[1].start()):
        # "The overlap of the chunks to 50" is no size of chunks.
        if not any(other.start() <= match.start() and match.end() <= other.end() and match.span() != other.span()
                   for which, other, _ in read if which != name):  # fmt: skip
            found[name] = quantity(name, first_group(match))
    for said, value in ((lexicon.concept("parts", "deterministic"), 0), (LOW, _LOW)):
        if scan.find(said, params="temperature"):
            found.setdefault("temperature", value)
    return found


def quantity(name: str, said: str) -> float:
    """A number as its field takes it."""
    number = to_number(said)
    return number if name == "temperature" and number != int(number) else round(number)


# --- Fields of a structured answer --------------------------------------------------------------------------------

STRUCTURED, EXTRACTS = pattern("fields", "structured"), pattern("fields", "extracts")
_RANGED, _TAIL, _SEPARATOR, _ARTICLE = (pattern("fields", name) for name in ("ranged", "tail", "separator", "article"))
#: "A list of items with product and quantity" is one field.
_NESTED, _NESTED_IN = pattern("fields", "nested"), re.compile(r"(?i)\s(?:each|with|mit|avec|con|com|met|z)\s")
_NUMBER_LIKE, _BOOLEAN_LIKE = pattern("fields", "number_like"), pattern("fields", "boolean_like")
_AS_NUMBER, _AS_BOOLEAN = pattern("fields", "as_number"), pattern("fields", "as_boolean")
_BRACKETS = re.compile(r"\([^()\n]{0,120}\)")
_NAME_END = re.compile(r"\s?[(:–—]|\s(?:as|als|come|como|comme|jako)\s|\s(?:[^\W\d]+\s){0,2}?\d")
_MARKS, _STAND_INS = ",;:./&()", "\ue000\ue001\ue002\ue003\ue004\ue005\ue006\ue007"
#: Marks that separate fields are hidden where they are within one.
_HIDDEN, _SHOWN = str.maketrans(_MARKS, _STAND_INS), str.maketrans(_STAND_INS, _MARKS)
_HIDDEN_BRACKETS = re.compile(f"{_STAND_INS[6]}[^{_STAND_INS[7]}]*{_STAND_INS[7]}")
_MAX_FIELDS = 20


@dataclass(frozen=True)
class Field:
    """One property: JSON-safe `name`, `kind` string, number or boolean, and what people call it."""

    name: str
    kind: str
    description: str


def find_fields(text: str) -> tuple[Field, ...]:
    """The fields that the text lists, () when it lists none."""
    text = _whole(text)
    listings = (match.group(1) for one in patterns("fields", "lists") for match in one.finditer(text))
    # "I get a lot of them" lists little.
    return max((listed(_TAIL.sub("", listing)) for listing in listings), key=len, default=())


def _whole(text: str) -> str:
    """With stand-ins for the marks in what explains a field."""
    for whole in (_BRACKETS, _AS_BOOLEAN):
        text = whole.sub(lambda one: one[0].translate(_HIDDEN), text)
    return text


def listed(listing: str) -> tuple[Field, ...]:
    """The fields of a list."""
    found: dict[str, Field] = {}
    text = _whole(listing)
    whole = [one.span() for one in _HIDDEN_BRACKETS.finditer(text)]
    for nested in [*_NESTED.finditer(text)][:1]:
        inside = [*_SEPARATOR.finditer(text, nested.end())]
        # Marks are within it where a word joins what is behind them: "items with product, quantity and unit".
        last = max((n for n, one in enumerate(inside, start=1) if one[0].strip().isalpha()), default=0)
        whole.append((nested.start(), [*(one.start() for one in inside[last:]), len(text)][0]))
    cuts = [one.span() for one in _SEPARATOR.finditer(text) if not any(a < one.start() < b for a, b in whole)]
    for a, b in [*pairwise([0, *chain.from_iterable(cuts), len(text)])][::2]:
        part = text[a:b]
        said = _ARTICLE.sub("", part.strip(" \t-•*\"'`“”«»")).translate(_SHOWN)
        # A name ends where brackets or a number begin: "urgency from 1 to 5 (5 is high)".
        bare = _NESTED_IN.split(_AS_BOOLEAN.sub("", _NAME_END.split(said)[0]))[0]
        # A long stretch is prose, not the name of a field.
        if (name := _identifier(bare)) and len(bare.split()) <= 5:
            number = _AS_NUMBER.search(said) or _RANGED.search(said) or _NUMBER_LIKE.search(bare)
            boolean = _AS_BOOLEAN.search(said) or _BOOLEAN_LIKE.search(bare)
            found.setdefault(name, Field(name, "boolean" if boolean else "number" if number else "string", said))
    # "As JSON data" lists nothing; among others "data" is a date.
    named = len({*found} - wordset("no_fields")) > 1
    unnamed = wordset("all_things") if named else wordset("no_fields")
    return tuple(one for name, one in found.items() if name not in unnamed)[:_MAX_FIELDS]


def in_ascii(said: str) -> str:
    """The text without marks on its letters, and without letters that ASCII has not."""
    return lexicon.bare(said.replace("ß", "ss")).encode("ascii", "ignore").decode()


def _identifier(said: str) -> str:
    name = "_".join(re.findall(r"[A-Za-z0-9]+", re.sub(r"'s\b", "", in_ascii(said)))).lower()
    return "" if name[:1].isdigit() else name


# --- Requests to addresses: tools of an agent ----------------------------------------------------------------------

_REQUEST, _GAP = pattern("reading", "request"), re.compile(r"[{<](\w+)[}>]")
#: "/orders/NUMBER": what varies, in capitals.
_CAPITALS = re.compile(r"(?<=/)([A-Z][A-Z_]{2,})(?=/|$)")
_FEW = 8
_SENTENCE_END, _VARIES = re.compile(r"[.!?]\s|\n"), re.compile(r"=(?:[{<]|[A-Z_-]+(?=&|$)|(?=&|$))")


@dataclass(frozen=True)
class Request:
    """An address that an agent asks: its `method`, and what the person says of it."""

    method: str
    url: str
    about: str

    @property
    def node(self) -> str:
        return f"requests{self.method.capitalize()}"

    def values(self, number: int) -> dict[str, str]:
        """The fields of its node, the `number`th of its type; what varies in the address is filled in by the model."""
        # What is written as it is asked stays; a name in capitals or braces varies.
        url = _CAPITALS.sub(r"{\1}", self.url)
        address, _, query = url.partition("?") if _VARIES.search(url) else (url, "", "")
        inputs = {name: {"type": "string", "in": "path", "required": True} for name in _GAP.findall(address)}
        inputs |= {name: {"type": "string", "in": "query", "description": value} for name, value in parse_qsl(query)}
        last = _identifier(unquote(_GAP.sub("", address.partition("?")[0])).rstrip("/").rpartition("/")[2]) or "address"
        found = {"Url": _GAP.sub(r":\1", address), "Name": f"{self.method}_{last}_{number}".lower()[:60]}
        found |= {"Description": self.about} if self.about else {}
        found |= {"QueryParamsSchema": json.dumps(inputs)} if inputs and self.method == "GET" else {}
        return {f"{self.node}{name}": value for name, value in found.items()}


def requests_of(scan: Scan) -> tuple[Request, ...]:
    """The addresses that the text says to ask: "GET https://...", "our endpoint https://..."."""
    found = dict[str, Request]()
    for match in _REQUEST.finditer(scan.text):
        url, method = match["url"].rstrip(".,;"), match["method"] or match["behind"] or "GET"
        *former, begins = [0, 0, *(one.end() for one in _SENTENCE_END.finditer(scan.text, 0, match.start()))]
        # Beside few words of its own what it is for is said in front of it.
        few = len(scan.text[begins : match.end()].split()) < _FEW
        begins = former[-1] if few and not re.search(r"://|[\n:]$", scan.text[former[-1] : begins]) else begins
        ends = _SENTENCE_END.search(scan.text, match.end("url"))
        about = " ".join(scan.text[begins : ends.start() if ends else None].replace("\x00", " ").split())
        # Within a sentence the address is a word of it.
        named = rf"(?:{method}\s)?{re.escape(match['url'])}(?:\s{method}\b)?"
        about = re.sub(rf"^\W*(?:{named}|{method}\b)|(?:{named}|\b{method})\W*$", "", about)
        request = Request(method, url, re.sub(r"^\((.*)\)$", r"\1", about.strip(" -–•*:,;"))[:300])
        found.setdefault(url, request)
        scan.spans.append(Span(match.start(), match.end("url"), frozenset({request.node}), frozenset({"@address"})))
    return tuple(found.values())


# --- Node types by their titles -----------------------------------------------------------------------------------

_TOKEN, _CAMEL = re.compile(r"[^\W_]+"), re.compile(r"(?<=[a-z])(?=[A-Z])")


def named_components(text: str, store: NodeStore) -> list[tuple[str, int, int]]:
    """(node type, start, end) of what the text asks for by title, in whatever spelling ("multi-query retriever",
    "InMemory Cache"), in order; longest titles first. What is negated or in quotes is left out."""
    titles, looked_for = _lexicon(store)
    quotes, found = quoted_spans(text), (match.span() for match in looked_for.finditer(text))
    return [(titles[_folded(text[start:end])], start, end) for start, end in found
            if not (is_negated(text, start, end) or any(a < start < b for a, b in quotes))]  # fmt: skip


@lru_cache(maxsize=8)
def _lexicon(store: NodeStore) -> tuple[Mapping[str, str], re.Pattern[str]]:
    """(folded title -> node name, what finds them). Of a title that several types have, none counts."""
    full, short = dict[str, tuple[str, str]](), dict[str, tuple[str, str]]()
    for schema in filter(_is_named, store.schemas.values()):
        said = _TOKEN.findall(_CAMEL.sub(" ", schema.label))
        _enter(full, said, schema)
        # What a title ends with and people leave out: "Cohere rerank" is the Cohere Rerank Retriever.
        if _folded(said[-1]) in wordset("kind_words") and len(said) > 2 and not schema.deprecated:
            _enter(short, said[:-1], schema)
    known = {key: one for key, one in {**short, **full}.items() if one[0] and key not in wordset("everyday_titles")}
    forms = sorted((form for _, form in known.values()), key=len, reverse=True)
    looked_for = re.compile(rf"{BEGINS}(?:{'|'.join(forms) or '(?!)'}){ENDS}", re.IGNORECASE)
    return {key: name for key, (name, _) in known.items()}, looked_for


def _enter(lexicon: dict[str, tuple[str, str]], said: Sequence[str], schema: NodeSchema) -> None:
    key = _folded(" ".join(said))
    # Words are joined, apart, or in the plural.
    form = r"[\s_/-]{0,2}".join(f"{re.escape(_singular(word))}s?" for word in said)
    lexicon[key] = ("" if key in lexicon else schema.name, form)


def _is_named(schema: NodeSchema) -> bool:
    # Providers are named by their houses, see `providers`; one word alone ("Jira") may be anything.
    if schema.category in ("Chat Models", "LLMs", "Utilities") or "LlamaIndex" in schema.name:
        return False
    many = len(_CAMEL.sub(" ", schema.label).split()) > 1 or schema.category == "Tools"
    return many and schema.category not in KIND_OF_CATEGORY


def _folded(said: str) -> str:
    return "".join(_singular(word.lower()) for word in _TOKEN.findall(_CAMEL.sub(" ", said)))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] in "sS" and word[-2] not in "sS" else word
