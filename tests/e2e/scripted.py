"""A model that knows what it does: answers of the stand-in for each phase, told apart by the schema asked for."""

from collections.abc import Mapping
from threading import Event
from typing import Any

from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, Reply, StandInToolCall
from flowise_dev_agent.devkit.standin.server import Script

#: Phase -> a property that only the schema of its answer has.
_MARKS = {"classify": "ambiguity", "plan": "flow_name", "patch": "ops", "judge": "done"}
#: The tool by which Claude answers; those beside it look things up.
_ANSWER = "give_answer"
DONE: dict[str, Any] = {"done": True, "category": None, "reason": "", "fix": "", "notes": []}


def model_environment(standin: ModelStandIn, engine: str = "openai") -> dict[str, str]:
    """The settings of a service whose model is the stand-in."""
    return {
        "REASONING_ENGINE": engine,
        "ANTHROPIC_API_KEY": "sk-ant-e2e",
        "ANTHROPIC_BASE_URL": standin.base_url_anthropic,
        "OPENAI_API_KEY": "sk-e2e",
        "OPENAI_BASE_URL": standin.base_url_openai,
    }


def script(
    standin: ModelStandIn, answers: Mapping[str, Any], *, when: str = "", gates: Mapping[str, Event] | None = None
) -> dict[str, Script]:
    """Answer the phases of a session with `answers` (phase -> JSON), for prompts that hold `when`.

    A list is answered one after the other, its last entry again and again. The text of a phase in `gates` stops half
    way until its event is set.
    """

    def rule(phase: str, answers: Any) -> Script:
        left: list[Any] = list(answers) if isinstance(answers, list) else [answers]

        def asks(request: RecordedRequest) -> bool:
            return _MARKS[phase] in _asked_schema(request).get("properties", {}) and when in request.prompt

        def reply(request: RecordedRequest) -> Reply:
            content = left.pop(0) if len(left) > 1 else left[0]
            gate = (gates or {}).get(phase)
            if _by_tool(request):
                return Reply(tool_calls=(StandInToolCall(_ANSWER, content),), gate=gate)
            return Reply(json=content, gate=gate)

        return standin.script(asks, reply)

    return {phase: rule(phase, content) for phase, content in answers.items()}


def _by_tool(request: RecordedRequest) -> bool:
    return any(tool.name == _ANSWER for tool in request.tools)


def _asked_schema(request: RecordedRequest) -> dict[str, Any]:
    """The shape of a structured answer: OpenAI's response format, or the tool by which Claude answers."""
    answer = (tool.schema for tool in request.tools if tool.name == _ANSWER)
    return request.json_schema or next(answer, {})
