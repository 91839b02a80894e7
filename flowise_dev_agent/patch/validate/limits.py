"""Rules on values that fail despite their right type: numbers out of range, addresses, schemas, sizes of chunks."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from flowise_dev_agent.patch.model.findings import Finding, error
from flowise_dev_agent.patch.model.json_text import unbalanced
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.values import is_empty, shown, without_markup
from flowise_dev_agent.patch.validate.context import FlowContext, rule

#: Smallest and largest value by field name; None is no bound.
BOUNDS: Final[Mapping[str, tuple[float, float | None]]] = {
    "chunkOverlap": (0, None),
    "chunkSize": (1, None),
    "frequencyPenalty": (-2, 2),
    "k": (1, None),
    "maxTokens": (0, None),
    # In percent: 0.8 would be no threshold at all.
    "minSimilarityScore": (1, 100),
    "presencePenalty": (-2, 2),
    "temperature": (0, 2),
    "timeout": (0, None),
    "topK": (1, None),
    "topP": (0, 1),
}
#: The server's defaults of empty fields.
_CHUNK_SIZE, _CHUNK_OVERLAP = 1000.0, 200.0
#: Fields whose value the server calls as an address, unchanged.
_ADDRESSES: Final = frozenset(
    {"basepath", "baseUrl", "requestsGetUrl", "requestsPostUrl", "requestsPutUrl", "requestsDeleteUrl"}
)
_ADDRESS_OF: Final = frozenset(
    {("httpAgentflow", "url"), ("cheerioWebScraper", "url"), ("playwrightWebScraper", "url")}
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s/]")
_ZOD_FIELD: Final = ("advancedStructuredOutputParser", "exampleJson")
_ZOD_WORD = re.compile(r"\bz\.([A-Za-z_]{1,40})")
_COMMENT = re.compile(r"//[^\n]*")
_ZOD_TYPES: Final = frozenset({"string", "number", "boolean", "date", "enum", "object", "array", "int"})
#: Measured on Flowise 3.1.4: it refuses `nullable` behind a list or an object, drops it without a word elsewhere, and
#: then refuses each null; and it splits what stands behind a type at each dot, those inside of its texts included.
_DROPPED: Final = re.compile(r"\.(nullable|nullish)\b")
_DOTTED: Final = re.compile(r"(\}\s{0,9}\)\.describe\(\s{0,9})?\"([^\"]*)\"")
#: Line terminators of the server's regular expression.
_LINES = re.compile("[\n\r\u2028\u2029]")
#: Measured on Flowise 3.1.4: 16 KB of `{{` are 1.3e8 steps and 0.09 s, 128 KB are 8.6e9 and 5.6 s.
_MOST_BRACE_STEPS: Final = 100_000_000


@rule("NUMBER_OUT_OF_RANGE", "ADDRESS_WITHOUT_SCHEME")
def bounds(flow: FlowContext) -> Iterator[Finding]:
    """Numbers in range and complete addresses: no search for zero documents, no temperature that providers reject."""
    for one in flow.components:
        for name, value in one.inputs.items():
            # Placeholders are reported separately, as input that the user has to give.
            if is_empty(value) or has_variable(value) or stands_in(value):
                continue
            field = f"{one.path}{name}"
            if name in BOUNDS and (number := _number(value)) is not None:
                low, high = BOUNDS[name]
                if number < low or (high is not None and number > high):
                    most = f" to {high:g}" if high is not None else " on"
                    yield error(
                        "NUMBER_OUT_OF_RANGE",
                        f"`{field}` is {number:g}; it must be from {low:g}{most}.",
                        where=one.node.id,
                        field=field,
                        hint=f"Use SetParam on `{field}` of {one.node.id}.",
                    )
            if is_address(one.name, name) and isinstance(value, str) and not _SCHEME.match(without_markup(value)):
                yield error(
                    "ADDRESS_WITHOUT_SCHEME",
                    f"`{field}` must be a whole address with its scheme; the server fails on it.",
                    where=one.node.id,
                    field=field,
                    hint=f"For example https://{value.strip().lstrip('/')[:60]}",
                )


def is_address(owner: str, name: str) -> bool:
    """True for a field whose value the server calls as an address, unchanged."""
    return name in _ADDRESSES or (owner, name) in _ADDRESS_OF


@rule("TEXT_STALLS_SERVER")
def braces(flow: FlowContext) -> Iterator[Finding]:
    """Texts with few unclosed `{{`: with many, the server's search for variables takes seconds or minutes."""
    for node in flow.nodes:
        for name, value in node.inputs.items():
            text = value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else ""
            # For each `{{` without a following `}}` the server scans to the end of the line.
            tails = [line.rpartition("}}")[2] for line in _LINES.split(text)] if text.count("{{") > 1 else []
            if sum(tail.count("{{") * len(tail) for tail in tails) > _MOST_BRACE_STEPS:
                yield error(
                    "TEXT_STALLS_SERVER",
                    f"`{name}` has {text.count('{{')} times `{{{{`, most without `}}}}`; the server would hang on it.",
                    where=node.id,
                    field=name,
                    hint=f"Remove the `{{{{` that start no variable from `{name}` of {node.id}.",
                )


@rule("CHUNK_OVERLAP")
def chunks(flow: FlowContext) -> Iterator[Finding]:
    """The overlap of chunks is smaller than the chunk size."""
    for node in flow.nodes:
        if node.category != "Text Splitters":
            continue
        size, overlap = node.inputs.get("chunkSize"), node.inputs.get("chunkOverlap")
        if has_variable(size) or has_variable(overlap):
            continue
        large = _CHUNK_SIZE if is_empty(size) else _number(size)
        repeated = _CHUNK_OVERLAP if is_empty(overlap) else _number(overlap)
        if large is not None and repeated is not None and repeated >= large > 0:
            yield error(
                "CHUNK_OVERLAP",
                f"`chunkOverlap` ({repeated:g}) must be smaller than `chunkSize` ({large:g}); the server fails on it.",
                where=node.id,
                field="chunkOverlap",
                hint=f"A tenth of `chunkSize` is usual, here {large / 10:g}.",
            )


@rule("BAD_ZOD_SCHEMA")
def zod(flow: FlowContext) -> Iterator[Finding]:
    """Schemas of structured answers use the small part of zod that the server reads."""
    for node in flow.nodes:
        value = node.inputs.get(_ZOD_FIELD[1])
        if node.name != _ZOD_FIELD[0] or not isinstance(value, str) or is_empty(value) or has_variable(value):
            continue
        if why := "" if "/*" in value else _broken_schema(_COMMENT.sub("", value).strip()):
            yield error(
                "BAD_ZOD_SCHEMA",
                f"`{_ZOD_FIELD[1]}` cannot be read: {why}.",
                where=node.id,
                field=_ZOD_FIELD[1],
                hint='For example z.object({ title: z.string().describe("the title"), score: z.number().optional() })',
            )


def _broken_schema(text: str) -> str:
    if not text.startswith("z.object("):
        return "it must begin with z.object("
    if problem := unbalanced(text):
        return problem
    unknown = next((word for word in _ZOD_WORD.findall(text) if word not in _ZOD_TYPES), "")
    if unknown:
        return f"z.{unknown} is not one of z.{', z.'.join(sorted(_ZOD_TYPES))}"
    if lost := _DROPPED.search(text):
        return f".{lost[1]}() is lost and a null is refused; .optional() is for a field that may be left out"
    if dotted := next((words for of_object, words in _DOTTED.findall(text) if "." in words and not of_object), ""):
        return f"the text {shown(dotted)!r} has a dot, where it would be split"
    return ""


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
