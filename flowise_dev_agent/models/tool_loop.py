"""Conversation of one phase: requests to a model, its tool calls, and answers returned for correction."""

import asyncio
from collections.abc import Sequence
from typing import Final

from flowise_dev_agent.errors import BudgetSpentError, ReasoningError
from flowise_dev_agent.models.base import UNKNOWN_WINDOW, ReasoningEngine
from flowise_dev_agent.models.capabilities import Loss
from flowise_dev_agent.models.messages import (
    MAX_TOOL_CALLS,
    DeltaSink,
    EngineResponse,
    Message,
    Prompt,
    SessionBudget,
    Toolbox,
    ToolCall,
    as_data,
)
from flowise_dev_agent.models.parsing import continued, is_cut, is_object, without_comments, without_thinking
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.settings import ReasoningSettings
from flowise_dev_agent.texts import text

#: Most requests for the rest of a cut answer.
_CONTINUATIONS: Final = 2
#: Characters of an answer that is handed back. A patch of sixty ops fits: it can be corrected, not only written again.
_SHOWN_BACK: Final = 24_000
#: Characters of the result of a look-up, and of one that still tells something.
_RESULT_SHOWN, _LEAST_SHOWN = 6_000, 400
#: Share of a window that the results of a phase may take: the prompt, the schema and the answer need the rest.
_RESULTS: Final = 0.15
#: Characters of a token, as an estimate.
_CHARS: Final = 4
GO_ON: Final = (
    "Your answer was cut off by the output limit. Go on with exactly the character that comes next: only the rest of "
    "the JSON, nothing repeated, no code fence, no other words."
)


class ToolLoop:
    """Loop that asks `engine` for an answer, and again for a better one; the conversation and tool results are kept.

    A round is one answer with calls of tools: they run in parallel, then the model is asked again. After
    `settings.max_tool_iterations` rounds or `MAX_TOOL_CALLS` calls, or when the results fill their share of the model's
    `window`, it has to answer with what it has. `usage` is what all requests together cost.
    """

    def __init__(
        self,
        engine: ReasoningEngine,
        settings: ReasoningSettings,
        prompt: Prompt,
        *,
        model: str,
        phase: str = "",
        output_schema: JsonObject,
        tools: Toolbox | None = None,
        window: int = UNKNOWN_WINDOW,
        budget: SessionBudget | None = None,
        on_delta: DeltaSink | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._system = prompt.system
        self._messages = [Message(role="user", content=prompt.user)]
        self._model = model
        self._phase = phase
        self._output_schema = output_schema
        self._tools = tools if settings.max_tool_iterations else None
        self._budget = budget
        self._on_delta = on_delta
        self._rounds_left = settings.max_tool_iterations
        self._calls_left = MAX_TOOL_CALLS
        #: Characters that further results may have.
        self._room = int(window * _RESULTS) * _CHARS
        self._last: EngineResponse | None = None
        self.usage = Usage()
        #: Features that the model did not take.
        self.lost: set[Loss] = set()

    async def answer(self) -> EngineResponse:
        """Get the model's answer, after its tool calls; `text` should be the requested object.

        Raises:
            BudgetSpentError: the session has no budget for the next request.
            ReasoningError: as `ReasoningEngine.complete`. `details.usage` is what the phase cost until then.
        """
        while True:
            may_look_up = (
                self._tools is not None
                and self._rounds_left > 0
                and self._calls_left > 0
                and self._room >= _LEAST_SHOWN
            )
            response = await self._request(may_look_up=may_look_up)
            if self._tools is None or not may_look_up or not response.tool_calls:
                if response.kind == "look_up" and not is_object(response.text):
                    # Nothing more is to be looked up: now the answer is asked for, held to its schema.
                    self._rounds_left = 0
                    continue
                response = await self._whole(response)
                self._last = response
                return response.model_copy(update={"text": without_comments(response.text)})
            self._rounds_left -= 1
            self._messages += [
                Message(
                    role="assistant",
                    content=response.text,
                    tool_calls=response.tool_calls,
                    turn=response.turn,
                ),
                *await self._look_up(self._tools, response.tool_calls),
            ]

    def hand_back(self, text: str, problems: Sequence[str]) -> None:
        """Return the answer to the model with its problems, for the next `answer`."""
        if self._last is not None and self._last.kind == "look_up":
            # It was written at once, without a schema: the next one is held to it.
            self._rounds_left = 0
        turn = self._last.turn if self._last is not None and len(text) <= _SHOWN_BACK else None
        self._messages += [
            Message(role="assistant", content=shortened(text, _SHOWN_BACK), turn=turn),
            Message(role="user", content=retry_text(problems)),
        ]

    async def _whole(self, response: EngineResponse) -> EngineResponse:
        """Complete an answer cut by the output limit. The rest is requested as plain text, since a JSON option would
        begin another object. It stays `truncated` if the rest does not fit.
        """
        for _ in range(_CONTINUATIONS):
            if not (response.truncated and is_cut(response.text)):
                break
            rest = await self._request(
                Message(role="assistant", content=response.text), Message(role="user", content=GO_ON), answer=False
            )
            text = continued(response.text, rest.text)
            if text is None:
                break
            response = response.model_copy(update={"text": text, "turn": None, "truncated": rest.truncated})
        return response

    async def _request(self, *more: Message, may_look_up: bool = False, answer: bool = True) -> EngineResponse:
        """Send the conversation and `more`; without `answer`, do not ask for the object."""
        if self._budget and (reached := self._budget.exceeded_by(self.usage)):
            raise BudgetSpentError(
                text("error.budget_used", reached=reached),
                hint=text("error.raise_budget"),
                details={"usage": self.usage.model_dump()},
            )
        try:
            response = await self._engine.complete(
                [*self._messages, *more],
                self._system,
                self._tools.definitions if self._tools else (),
                self._settings.temperature,
                may_look_up=may_look_up,
                output_schema=self._output_schema if answer else None,
                model=self._model,
                phase=self._phase,
                on_delta=self._on_delta,
            )
        except ReasoningError as error:
            error.details["usage"] = (self.usage + Usage(**error.details.get("usage", {}))).model_dump()
            raise
        self.usage += response.usage
        self.lost |= {*response.lost}
        return response.model_copy(update={"text": without_thinking(response.text)})

    async def _look_up(self, tools: Toolbox, calls: Sequence[ToolCall]) -> list[Message]:
        """Run the tool calls; results are in the order of the calls, one for each, as providers require."""
        run, left_out = calls[: self._calls_left], calls[self._calls_left :]
        self._calls_left -= len(run)
        try:
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(_result(tools, call)) for call in run]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        # Short results leave their room to long ones.
        texts, waiting = [task.result() for task in running], len(running)
        for number in sorted(range(len(texts)), key=lambda at: len(texts[at])):
            texts[number] = as_data(shortened(texts[number], max(1, min(_RESULT_SHOWN, self._room // waiting))))
            self._room = max(0, self._room - len(texts[number]))
            waiting -= 1
        texts += [f"Not run: a phase has at most {MAX_TOOL_CALLS} calls. Answer with what you have."] * len(left_out)
        return [
            Message(role="tool", content=text, tool_call_id=call.id) for call, text in zip(calls, texts, strict=True)
        ]


async def _result(tools: Toolbox, call: ToolCall) -> str:
    if call.malformed:
        return f"Not run: the arguments are not one JSON object: {call.malformed}"
    return await tools.call(call.name, call.arguments)


def retry_text(problems: Sequence[str]) -> str:
    """Message that returns an unusable answer to the model."""
    return "Your answer could not be used:\n" + "\n".join(f"- {p}" for p in problems) + "\nGive it again, corrected."
