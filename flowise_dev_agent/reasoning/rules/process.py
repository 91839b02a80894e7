"""The rules in a process of their own, which is ended when they take too long.

Requirements are hostile text and the rules are hundreds of regular expressions: a text on which one of them spins must
cost its session an answer, and no worker more than that. The process starts at the first use, serves one request at a
time, and is replaced after it was ended. Requests and answers are pickles behind their length; a catalogue of node
types, which is much larger than all else, crosses once. The rules themselves are imported where they run.
"""

import asyncio
import contextlib
import io
import pickle
import re
import struct
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final, Literal

from flowise_dev_agent.contracts.plan import PatchAnswer
from flowise_dev_agent.errors import ModelOutputError, ModelUnavailableError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.contracts import (
    ClassifyRequest,
    Intent,
    JudgeRequest,
    PatchRequest,
    PlanContract,
    PlanRequest,
    Reasoned,
    Verdict,
)
from flowise_dev_agent.reasoning.reasoner import Reasoner

Request = ClassifyRequest | PlanRequest | PatchRequest | JudgeRequest
Question = Literal["classify", "plan", "patch", "judge"]

_LENGTH: Final = struct.Struct("!Q")
#: An ordinary request takes well under a second; the first one also the start of the process.
_DEADLINE_SECS: Final = 30.0
_BLANKS: Final = re.compile(r"[^\S\n]{2,}")
_EMPTY_LINES: Final = re.compile(r"\n\s{2,}")
#: `suggest_node_types` answers at once, in this process, so it reads only the beginning of a text.
_SUGGEST_CHARS: Final = 2_000


@dataclass(frozen=True)
class _Answer:
    """What came of a request: a value, words for the person, or the traceback of a mistake of ours."""

    value: Any = None
    refused: str | None = None
    broken: str | None = None


#: The catalogues that both ends have, by place.
_Places = dict[int, NodeStore]
#: How many are kept: those of the instances in use.
_MOST_CATALOGUES: Final = 4


class _Pickler(pickle.Pickler):
    """Writes a catalogue as its place, with its content only where the other end lacks it."""

    def __init__(self, sink: io.BytesIO, places: _Places) -> None:
        super().__init__(sink)
        self._places = places

    def persistent_id(self, obj: object) -> tuple[int, object] | None:
        if not isinstance(obj, NodeStore):
            return None
        for place, known in self._places.items():
            if known is obj:
                return place, None
        # The place of the oldest, once all are taken.
        full = len(self._places) == _MOST_CATALOGUES
        place = next(iter(self._places)) if full else len(self._places)
        self._places.pop(place, None)
        self._places[place] = obj
        return place, obj.__getstate__()


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` writes."""

    def __init__(self, source: io.BytesIO, places: _Places) -> None:
        super().__init__(source)
        self._places = places

    def persistent_load(self, pid: tuple[int, dict[str, object] | None]) -> NodeStore:
        place, state = pid
        if state is not None:
            store = self._places[place] = NodeStore.__new__(NodeStore)
            vars(store).update(state)
        return self._places[place]


class RulesProcess(Reasoner):
    """`DeterministicReasoner` behind a deadline."""

    def __init__(self, deadline_secs: float = _DEADLINE_SECS) -> None:
        self._deadline = deadline_secs
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._places: _Places = {}

    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        return await self._ask("classify", request)

    async def plan(self, request: PlanRequest) -> Reasoned[PlanContract]:
        return await self._ask("plan", request)

    async def patch(self, request: PatchRequest) -> Reasoned[PatchAnswer]:
        return await self._ask("patch", request)

    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        return await self._ask("judge", request)

    def suggest_node_types(self, text: str, nodes: NodeStore, credential_types: Mapping[str, int]) -> list[str]:
        from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

        return DeterministicReasoner().suggest_node_types(squeezed(text)[:_SUGGEST_CHARS], nodes, credential_types)

    async def aclose(self) -> None:
        async with self._turn:
            await self._end()

    async def _ask(self, question: Question, request: Request) -> Reasoned[Any]:
        # What belongs to a model stays here: a sink for its words, its budget, its tools, checks of its answer.
        sent = replace(_readable(request), on_delta=None, budget=None, tools=None)
        if isinstance(sent, PlanRequest):
            sent = replace(sent, review=None)
        async with self._turn:
            try:
                async with asyncio.timeout(self._deadline):
                    answer = await self._exchange((question, sent))
            except TimeoutError:
                await self._end()
                raise ModelOutputError(
                    f"The rules did not finish reading this text within {self._deadline:g} s.",
                    hint="Say it in fewer and plainer words.",
                ) from None
            except (OSError, EOFError):
                await self._end()
                raise ModelUnavailableError(
                    "The process of the rules ended unexpectedly.", hint="Check the memory of the worker and try again."
                ) from None
            except BaseException:
                # Cancelled in the middle: what it would answer next belongs to nobody.
                await self._end()
                raise
        if answer.refused is not None:
            raise ModelOutputError(answer.refused)
        if answer.broken is not None:
            raise RuntimeError(f"The rules failed:\n{answer.broken}")
        return answer.value

    async def _exchange(self, message: Any) -> _Answer:
        process = self._process
        if process is None or process.returncode is not None:
            self._places = {}
            process = self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", f"import sys, {__name__} as rules; rules.serve(sys.stdin.buffer, sys.stdout.buffer)"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                # Ctrl-C is for the service, which ends it.
                start_new_session=True,
            )
        if process.stdin is None or process.stdout is None:
            raise EOFError
        buffer = io.BytesIO()
        _Pickler(buffer, self._places).dump(message)
        body = buffer.getvalue()
        process.stdin.write(_LENGTH.pack(len(body)) + body)
        await process.stdin.drain()
        (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
        # From our own process, which made it of typed answers.
        return pickle.loads(await process.stdout.readexactly(length))  # noqa: S301

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()


def squeezed(text: str) -> str:
    """`text` with runs of blanks and empty lines shortened: nothing is lost, and no expression walks through them."""
    return _EMPTY_LINES.sub("\n\n", _BLANKS.sub(" ", text))


def _readable(request: Request) -> Request:
    changed: dict[str, Any] = {
        "requirement": squeezed(request.requirement),
        "clarifications": tuple((question, squeezed(answer)) for question, answer in request.clarifications),
    }
    if isinstance(request, PlanRequest | PatchRequest) and request.feedback:
        changed["feedback"] = squeezed(request.feedback)
    return replace(request, **changed)


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until there are no more."""
    from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

    rules, places = DeterministicReasoner(), _Places()
    while len(head := source.read(_LENGTH.size)) == _LENGTH.size:
        # From our own service.
        question, request = _Unpickler(io.BytesIO(source.read(_LENGTH.unpack(head)[0])), places).load()
        try:
            answer = _Answer(asyncio.run(getattr(rules, question)(request)))
        except ModelOutputError as error:
            answer = _Answer(refused=error.message)
        except Exception:  # noqa: BLE001 - reported to the service, which logs it
            answer = _Answer(broken=traceback.format_exc())
        body = pickle.dumps(answer)
        sink.write(_LENGTH.pack(len(body)) + body)
        sink.flush()
