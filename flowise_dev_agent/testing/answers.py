"""Answers of stand-ins: given by a test, else made up from what the flow reads, as values and as code."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.plan import TestCase

#: Reads of the answer of an HTTP step, which its stand-in does not have under this path; a bare one reads its data.
HTTP_READ: Final = r"\{\{\s*%s(?:\.output\.http\.([\w.\[\]$-]{1,200}))?\s*\}\}"
BARE: Final = "data"
#: Shape of an answer: a value, a text, and what a request and another flow say.
Form: TypeAlias = Literal["json", "text", "http", "flow"]
_OK: Final = 200
SIMULATED_FAILURE: Final = "The simulated call failed."
_STEP_IN_PATH: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_NUMBER: Final = re.compile(
    r"(?:id|count|number|qty|quantity|amount|price|total|sum|score|age|year|kilos|percent)s?$", re.I
)


def answers_of(tests: Iterable[TestCase]) -> dict[str, dict[str, JsonValue]]:
    """Answers by what gives them (id of a node, or name or type of a tool), then by test."""
    found: dict[str, dict[str, JsonValue]] = {}
    for test in tests:
        for name, answer in (test.answers or {}).items():
            found.setdefault(name, {})[test.id] = parsed(answer)
    return found


def parsed(answer: JsonValue) -> JsonValue:
    """Answer, read as JSON where it is JSON in a text."""
    if isinstance(answer, str) and answer.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return json.loads(answer)
    return answer


@dataclass(frozen=True)
class Answer:
    """Answer of a stand-in: by test, else the first of a test, else a sample. `number` is that of the stand-in."""

    number: int
    by_test: Mapping[str, JsonValue]
    sample: JsonValue

    def code(self, form: Form = "json") -> str:
        """Code that gives the answer. The id of the session ends with the test, the stand-in that fails or answers
        nothing in it (`error2`), and the number of the trial.
        """

        def written(value: JsonValue, status: int = 200) -> str:
            if form == "http":
                status_text = "OK" if status == _OK else "Internal Server Error"
                return _as_js({"data": value, "status": status, "statusText": status_text})
            return _as_js(value if isinstance(value, str) or form != "text" else json.dumps(value, ensure_ascii=False))

        first = next(iter(self.by_test.values()), self.sample)
        # A request that is refused, and a flow that fails, do not stop the flow.
        refused: Mapping[str, JsonValue] = {
            "http": {"error": SIMULATED_FAILURE},
            "flow": {"statusCode": 500, "success": False, "message": f"Error: {SIMULATED_FAILURE}"},
        }
        failure = f"throw new Error('{SIMULATED_FAILURE}');"
        fails = f"return {written(refused[form], 500)};" if form in refused else failure
        table = ", ".join(f"{json.dumps(test)}: {written(value)}" for test, value in self.by_test.items())
        return (
            "const of = /-(t\\d+)(?:(error|empty|limit)(\\d+))?-\\d+$/.exec(String($flow.sessionId || ''));\n"
            f"if (of && of[2] !== 'limit' && of[3] === '{self.number}') {{\n  if (of[2] === 'error') {{ {fails} }}\n"
            f"  return {written('' if form == 'text' else _emptied(first))};\n}}\n"
            f"const answers = {{{table} }};\n"
            f"return of && of[1] in answers ? answers[of[1]] : {written(first)};"
        )


def _emptied(value: JsonValue) -> JsonValue:
    """Answer of the same shape that holds nothing."""
    if isinstance(value, dict):
        return {name: _emptied(one) for name, one in value.items()}
    if isinstance(value, list):
        return []
    return "" if isinstance(value, str) else 0 if isinstance(value, int | float) else value


def sample_answer(node_id: str, flow_data: str) -> JsonValue:
    """Answer with the fields that the flow reads of a step, each with a value that its name suggests."""
    reads = re.findall(HTTP_READ % re.escape(node_id), flow_data)
    answer: dict[str, JsonValue] = {}
    for read in dict.fromkeys(reads):
        steps = steps_of(read)
        if steps[:1] == [BARE] and len(steps) > 1:
            name = str(steps[-1])
            put(answer, steps[1:], 1001 if _NUMBER.search(name) else f"sample {name}")
    return answer or {"status": "ok", "id": 1001}


def put(place: dict[str, JsonValue], steps: Sequence[str | int], value: JsonValue, *, anew: bool = False) -> None:
    """Put a value under a path, without changing what is there unless `anew`. An item of a list is its first one."""
    name, rest = str(steps[0]), steps[1:]
    if not rest:
        place[name] = value if anew else place.get(name, value)
        return
    inner = place.setdefault(name, [] if isinstance(rest[0], int) else {})
    if isinstance(inner, list):
        rest = rest[1:]
        if not rest and (anew or not inner):
            inner[:1] = [value if anew else {}]
        elif rest and not inner:
            inner.append({})
        inner = inner[0]
    if rest and isinstance(inner, dict):
        put(inner, rest, value, anew=anew)


def steps_of(path: str) -> list[str | int]:
    """Names and numbers of a path."""
    return [int(index) if index else name for name, index in _STEP_IN_PATH.findall(path)]


def dotted(path: str) -> str:
    """Path without brackets, as Flowise reads it in an update of the state."""
    return re.sub(r"\[(\d+)\]", r".\1", path)


def _as_js(value: Any) -> str:
    """JSON that is safe as a literal in JavaScript, and that holds no variable of Flowise."""
    written = json.dumps(value, ensure_ascii=True, indent=None)
    return written.replace("{{", "{ {").replace("}}", "} }")
