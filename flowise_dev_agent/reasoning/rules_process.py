"""The rules in a process of their own, which is ended when they take too long.

Requirements are hostile text and the rules are hundreds of regular expressions: a text on which one of them spins must
cost its session an answer, and no worker more than that. The process starts at the first use, serves one request at a
time, and is replaced after it was ended. A catalogue of node types is much larger than all else and crosses once. The
rules themselves are imported where they run.
"""

import asyncio
import re
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from socket import socketpair
from typing import Any, Final, Literal

from flowise_dev_agent.contracts.plan import PatchAnswer
from flowise_dev_agent.errors import ModelOutputError, ModelUnavailableError
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning import contracts
from flowise_dev_agent.reasoning.reasoner import Reasoner

Request = contracts.ClassifyRequest | contracts.PlanRequest | contracts.PatchRequest | contracts.JudgeRequest
Question = Literal["classify", "plan", "patch", "judge"]

#: An ordinary request takes well under a second; the first one also the start of the process.
_DEADLINE_SECS: Final = 30.0
_BLANKS: Final = re.compile(r"[^\S\n]{2,}")
_EMPTY_LINES: Final = re.compile(r"\n\s{2,}")
#: `suggest_node_types` answers at once, in this process, so it reads only the beginning of a text.
_SUGGEST_CHARS: Final = 2_000


#: How many catalogues the process keeps with what it made of them: those of the instances in use.
_MOST_CATALOGUES: Final = 4
_NO_CATALOGUE: Final = NodeStore({}, "", fingerprint="")


@dataclass(frozen=True)
class _Message:
    """A question to the process. The catalogue is left out of the request: the process has it under a number, or gets
    it with this message."""

    question: Question
    request: Request
    number: int | None = None
    catalogue: NodeStore | None = None


class _Catalogues:
    """The catalogues of one process by number, the latest ones: the same at both ends."""

    def __init__(self) -> None:
        self._known: dict[int, NodeStore] = {}
        self._next = 0

    def number_of(self, catalogue: NodeStore) -> tuple[int, bool]:
        """The number of a catalogue, and whether it is new."""
        for number, known in self._known.items():
            if known is catalogue:
                return number, False
        self._next += 1
        self.keep(self._next, catalogue)
        return self._next, True

    def keep(self, number: int, catalogue: NodeStore) -> None:
        """Keep a catalogue, and forget the oldest one of too many."""
        self._known[number] = catalogue
        if len(self._known) > _MOST_CATALOGUES:
            del self._known[next(iter(self._known))]

    def __getitem__(self, number: int) -> NodeStore:
        return self._known[number]


class RulesProcess(Reasoner):
    """`DeterministicReasoner` behind a deadline."""

    def __init__(self, deadline_secs: float = _DEADLINE_SECS) -> None:
        self._deadline = deadline_secs
        self._turn = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._catalogues = _Catalogues()

    async def classify(self, request: contracts.ClassifyRequest) -> contracts.Reasoned[contracts.Intent]:
        return await self._ask("classify", request)

    async def plan(self, request: contracts.PlanRequest) -> contracts.Reasoned[contracts.PlanContract]:
        return await self._ask("plan", request)

    async def patch(self, request: contracts.PatchRequest) -> contracts.Reasoned[PatchAnswer]:
        return await self._ask("patch", request)

    async def judge(self, request: contracts.JudgeRequest) -> contracts.Reasoned[contracts.Verdict]:
        return await self._ask("judge", request)

    @property
    def reads_candidates(self) -> bool:
        return False

    def suggest_node_types(self, text: str, nodes: NodeStore, credential_types: Mapping[str, int]) -> list[str]:
        from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

        return DeterministicReasoner().suggest_node_types(squeezed(text)[:_SUGGEST_CHARS], nodes, credential_types)

    async def aclose(self) -> None:
        async with self._turn:
            await self._end()

    async def _ask(self, question: Question, request: Request) -> contracts.Reasoned[Any]:
        # What belongs to a model stays here: a sink for its words, its budget, its tools, checks of its answer.
        sent = replace(_readable(request), on_delta=None, budget=None, tools=None)
        if isinstance(sent, contracts.PlanRequest):
            # The rules look through the whole catalogue.
            sent = replace(sent, review=None, candidates=(), templates=())
        async with self._turn:
            try:
                async with asyncio.timeout(self._deadline):
                    answer = await asyncio.to_thread(_exchanged, self._started(), self._message(question, sent))
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
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _started(self) -> Connection:
        if self._pipe is None or self._process is None or self._process.poll() is not None:
            ours, theirs = socketpair()
            self._pipe = Connection(ours.detach())
            code = f"import {__name__} as rules; rules.serve(rules.Connection({theirs.fileno()}))"
            command, inherited = [sys.executable, "-c", code], [theirs.fileno()]
            # Ctrl-C is for the service, which ends it.
            self._process = subprocess.Popen(  # noqa: S603 - a fixed command
                command, stdin=subprocess.DEVNULL, pass_fds=inherited, start_new_session=True
            )
            theirs.close()
            self._catalogues = _Catalogues()
        return self._pipe

    def _message(self, question: Question, request: Request) -> _Message:
        if not isinstance(request, contracts.PlanRequest | contracts.PatchRequest):
            return _Message(question, request)
        number, is_new = self._catalogues.number_of(request.nodes)
        sent = replace(request, nodes=_NO_CATALOGUE)
        return _Message(question, sent, number, request.nodes if is_new else None)

    async def _end(self) -> None:
        # The pipe closes with its last user: a thread may still be reading from it.
        process, self._process, self._pipe = self._process, None, None
        if process is not None:
            process.kill()
            await asyncio.to_thread(process.wait)


def _exchanged(pipe: Connection, message: _Message) -> Any:
    pipe.send(message)
    return pipe.recv()


def squeezed(text: str) -> str:
    """`text` with runs of blanks and empty lines shortened: nothing is lost, and no expression walks through them."""
    return _EMPTY_LINES.sub("\n\n", _BLANKS.sub(" ", text))


def _readable(request: Request) -> Request:
    changed: dict[str, Any] = {
        "requirement": squeezed(request.requirement),
        "clarifications": tuple((question, squeezed(answer)) for question, answer in request.clarifications),
    }
    if isinstance(request, contracts.PlanRequest | contracts.PatchRequest) and request.feedback:
        changed["feedback"] = squeezed(request.feedback)
    return replace(request, **changed)


def serve(pipe: Connection) -> None:
    """Answer requests until there are no more."""
    from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner

    rules, catalogues = DeterministicReasoner(), _Catalogues()
    with asyncio.Runner() as runner:
        while True:
            try:
                message: _Message = pipe.recv()
            except EOFError:
                return
            if message.number is not None and message.catalogue is not None:
                catalogues.keep(message.number, message.catalogue)
            request = message.request
            if message.number is not None and isinstance(request, contracts.PlanRequest | contracts.PatchRequest):
                request = replace(request, nodes=catalogues[message.number])
            try:
                answer = runner.run(getattr(rules, message.question)(request))
            except ModelOutputError as error:
                answer = error
            except Exception:  # noqa: BLE001 - reported to the service, which logs it
                answer = RuntimeError(f"The rules failed:\n{traceback.format_exc()}")
            pipe.send(answer)
