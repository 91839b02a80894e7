"""An answer while it is being read: the same for whole and for streamed ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from json_repair import repair_json

from flowise_dev_agent.reasoning.contracts import EngineResponse, ToolCall, Usage
from flowise_dev_agent.reasoning.text import clean, clean_json


@dataclass
class _Call:
    id: str
    name: str
    arguments: str = ""


@dataclass
class ResponseBuffer:
    """Collects text, tool calls and token counts by the provider's own names."""

    model: str = ""
    #: Empty until the provider says why it stopped; an answer that never says so was cut.
    stop_reason: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    _text: list[str] = field(default_factory=list)
    _calls: dict[int, _Call] = field(default_factory=dict)

    @property
    def is_blank(self) -> bool:
        """Whether nothing at all has been read: not a single event of the provider's protocol."""
        return not (self.model or self.stop_reason or self._text or self._calls)

    @property
    def text(self) -> str:
        return "".join(self._text)

    def add_text(self, text: str) -> None:
        self._text.append(text)

    def start_call(self, index: int, call_id: str, name: str) -> None:
        self._calls[index] = _Call(id=call_id, name=name)

    def add_arguments(self, index: int, part: str) -> None:
        if index in self._calls:
            self._calls[index].arguments += part

    def call_name(self, index: int) -> str:
        return self._calls[index].name if index in self._calls else ""

    def has_call(self, index: int) -> bool:
        return index in self._calls

    def take_call(self, name: str) -> str | None:
        """Remove the call `name` and return its raw arguments, None when there is none."""
        for index, call in self._calls.items():
            if call.name == name:
                del self._calls[index]
                return call.arguments
        return None

    def response(self, *, text: str, usage: Usage, fallback_model: str, cut_by: Sequence[str]) -> EngineResponse:
        """The finished answer; `cut_by` are the stop reasons that mean "no room left"."""
        return EngineResponse(
            text=clean(text),
            tool_calls=tuple(
                ToolCall(id=call.id, name=call.name, arguments=_arguments(call.arguments))
                for call in self._calls.values()
                if call.name
            ),
            usage=usage,
            model=self.model or fallback_model,
            stop_reason=self.stop_reason,
            truncated=not self.stop_reason or self.stop_reason in cut_by,
        )


def _arguments(text: str) -> dict[str, Any]:
    value = repair_json(text, return_objects=True) if text else {}
    return clean_json(value) if isinstance(value, dict) else {}
