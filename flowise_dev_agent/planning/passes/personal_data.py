"""Personal data that passes between domains: shown in the plan, and masked in stored traces."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from flowise_dev_agent.patch import Finding
from flowise_dev_agent.patch.model.json_text import inner_json
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.requests import ReadyTool
from flowise_dev_agent.schemas.verdict import Trace, TracedTool, TraceStep

T = TypeVar("T", TraceStep, TracedTool)
#: Code of a finding on personal data of one domain that can reach another one.
PII_PASSES: Final = "PII_PASSES"
MASK: Final = "[personal data]"
#: Shorter values occur in texts by chance.
_SHORTEST: Final = 3
_DEEPEST: Final = 20
#: Words that begin with a capital letter or hold a digit.
_TELLING: Final = re.compile(r"\b(?:[^\W\d_a-zß-öø-ÿ][\w'’-]*|\w*\d[\w-]*)")


def personal_data(context: PlanContext) -> PlanContext:
    """Warn of personal data that may pass from one domain of the plan to another."""
    used = [tool for tool in context.request.ready_tools if tool.domain in context.plan.domain_targets]
    return context.found(passes(used)) if context.is_open else context


def passes(tools: Sequence[ReadyTool]) -> list[Finding]:
    """Warnings for domains whose personal data an agent may pass to tools of another domain."""
    found: list[Finding] = []
    for source in dict.fromkeys(tool.domain for tool in tools):
        fields = list(dict.fromkeys(name for tool in tools if tool.domain == source for name in tool.pii_fields))
        others = [tool for tool in tools if tool.domain != source]
        if not fields or not others:
            continue
        hosts = sorted({host for tool in others for host in _hosts(tool.values)})
        where = ", ".join(dict.fromkeys(tool.domain for tool in others))
        where += f" ({', '.join(hosts)})" if hosts else ""
        found.append(
            Finding(
                code=PII_PASSES,
                severity="warning",
                detail=f"Personal data of {source} ({', '.join(fields)}) can pass to {where}: one agent has both.",
                params={"domain": source, "fields": fields, "others": where},
                hint="Approve it only if it may go there; or give the tools to different flows.",
            )
        )
    return found


def without_personal_data(trace: Trace, pii_fields: Sequence[str], pii_tools: Sequence[str] = ()) -> Trace:
    """Mask the values of personal fields in a trace, and their occurrences in its texts.

    Plain text output of a tool in `pii_tools` has no field names: it is masked completely, and so are names and numbers
    of it elsewhere.
    """
    names = {field.rpartition(".")[2].casefold() for field in pii_fields} - {""}
    if not names:
        return trace
    content: list[Any] = [trace.state, *(source.metadata for source in trace.sources)]
    content += [value for one in (*trace.steps, *trace.used_tools) for value in (one.input, one.output)]
    tools = {_plain(name) for name in pii_tools}
    told = [text for one in trace.used_tools if _plain(one.tool) in tools for text in _texts(one.output, 0)]
    words = {word for text in told for word in _TELLING.findall(text) if len(word) >= _SHORTEST}
    values = sorted({*_values(content, names, 0), *told, *words}, key=len, reverse=True)

    def clean(value: Any) -> Any:
        return _masked(value, names, values, 0)

    return trace.model_copy(
        update={
            "turns": [
                one.model_copy(update={"said": clean(one.said), "answer": clean(one.answer)}) for one in trace.turns
            ],
            "steps": [_cleaned(one, clean) for one in trace.steps],
            "used_tools": [_cleaned(one, clean) for one in trace.used_tools],
            "sources": [
                one.model_copy(update={"text": clean(one.text), "metadata": clean(one.metadata)})
                for one in trace.sources
            ],
            "state": clean(trace.state),
        }
    )


def _cleaned(one: T, clean: Callable[[Any], Any]) -> T:
    return one.model_copy(update={"input": clean(one.input), "output": clean(one.output), "error": clean(one.error)})


def _texts(value: Any, depth: int) -> Iterator[str]:
    """Yield the plain texts of a tool's output, including MCP content."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, Mapping):
        if value.get("type") == "text":
            yield from _texts(value.get("text"), depth + 1)
    elif isinstance(value, str):
        inner = inner_json(value)
        if inner is not None:
            yield from _texts(inner, depth + 1)
        elif len(value) >= _SHORTEST:
            yield value


def _plain(name: str) -> str:
    return "".join(char for char in name if char.isalnum()).casefold()


def _values(value: Any, names: Set[str], depth: int) -> Iterator[str]:
    """Yield the texts of the named fields, also in JSON inside texts."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for name, item in value.items():
            if _hides(name, item, names):
                if isinstance(item, str) and len(item) >= _SHORTEST:
                    yield item
            else:
                yield from _values(item, names, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, names, depth + 1)
    elif isinstance(value, str) and (inner := inner_json(value)) is not None:
        yield from _values(inner, names, depth + 1)


def _masked(value: Any, names: Set[str], values: Sequence[str], depth: int) -> Any:
    if depth > _DEEPEST:
        return MASK
    if isinstance(value, Mapping):
        return {
            name: MASK if _hides(name, item, names) else _masked(item, names, values, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_masked(item, names, values, depth + 1) for item in value]
    if not isinstance(value, str):
        return value
    if (inner := inner_json(value)) is not None:
        return json.dumps(_masked(inner, names, values, depth + 1), ensure_ascii=False)
    for one in values:
        value = value.replace(one, MASK)
    return value


def _hides(name: Any, value: Any, names: Set[str]) -> bool:
    return str(name).casefold() in names and value not in (None, "", MASK)


def _hosts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        if host := urlsplit(value).hostname:
            yield host
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _hosts(item)
