"""Run each phase in its mode, and once in the other mode if that fails."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from flowise_dev_agent.errors import BudgetSpentError, ModelOutputError, ModelUnavailableError, ReasoningError
from flowise_dev_agent.models import CapabilityStore, engine_for
from flowise_dev_agent.planning.deterministic import DeterministicReasoner
from flowise_dev_agent.planning.llm import LlmReasoner
from flowise_dev_agent.planning.reasoner import Reasoner
from flowise_dev_agent.planning.requests import (
    ClassifyRequest,
    Degraded,
    JudgeRequest,
    Mode,
    PatchRequest,
    PlanRequest,
    Reasoned,
)
from flowise_dev_agent.schemas.plan import Intent, PatchAnswer, Plan
from flowise_dev_agent.schemas.usage import Usage
from flowise_dev_agent.schemas.verdict import Verdict
from flowise_dev_agent.settings import Phase, ReasoningSettings

T = TypeVar("T")
_OTHER: Final[Mapping[Mode, Mode]] = {"llm_guided": "deterministic", "deterministic": "llm_guided"}


class PhasedReasoner(Reasoner):
    """Reasoner with a model and code, and a fallback from one to the other.

    A phase runs in the mode that the settings give it. When its reasoner gives up after its own tries (unusable
    answers, provider down) the other one is asked once and the result is marked `degraded`. A refused key is a mistake
    in the settings and has no fallback, and neither has the plan of a change, which only a model reads. When the other
    mode fails as well, the first error is raised. What a form says is built by code whatever the mode; a model is asked
    only about what the form leaves open.
    """

    def __init__(self, model: Reasoner, code: Reasoner, settings: ReasoningSettings) -> None:
        self._by_mode: Mapping[Mode, Reasoner] = {"llm_guided": model, "deterministic": code}
        self._settings = settings

    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        return await self._run("classify", lambda reasoner: reasoner.classify(request))

    async def plan(self, request: PlanRequest) -> Reasoned[Plan]:
        if request.design is not None or request.new_name is not None:
            # The request is complete: no model is needed.
            return await self._by_mode["deterministic"].plan(request)
        starts = request.is_new and (request.previous is None or request.previous.declined is not None)
        return await self._run("plan", lambda reasoner: reasoner.plan(request), falls_back=starts)

    async def patch(self, request: PatchRequest) -> Reasoned[PatchAnswer]:
        if request.by_form and not request.findings:
            try:
                return await self._by_mode["deterministic"].patch(request)
            except ModelOutputError:
                pass  # It leaves open how its nodes are connected.
        return await self._run("patch", lambda reasoner: reasoner.patch(request))

    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        return await self._run("judge", lambda reasoner: reasoner.judge(request))

    @property
    def skills_version(self) -> str | None:
        return self._by_mode["llm_guided"].skills_version

    @property
    def reads_candidates(self) -> bool:
        return self._by_mode[self._settings.mode_of("plan")].reads_candidates

    async def aclose(self) -> None:
        for reasoner in self._by_mode.values():
            await reasoner.aclose()

    async def _run(
        self, phase: Phase, ask: Callable[[Reasoner], Awaitable[Reasoned[T]]], *, falls_back: bool = True
    ) -> Reasoned[T]:
        mode = self._settings.mode_of(phase)
        try:
            return await ask(self._by_mode[mode])
        except (ModelOutputError, ModelUnavailableError) as error:
            if not (self._settings.fallback_enabled and falls_back):
                raise
            try:
                result = await ask(self._by_mode[_OTHER[mode]])
            except BudgetSpentError:
                raise
            except ReasoningError:
                raise error from None
            spent = Usage(**error.details.get("usage", {}))
            degraded = Degraded(failed_mode=mode, fallback_mode=_OTHER[mode], reason=error.message)
            return replace(result, usage=spent + result.usage, degraded=degraded)


def make_reasoner(settings: ReasoningSettings, store: CapabilityStore | None = None) -> Reasoner:
    """Create the reasoner of the settings. It holds connections: close it with `aclose`."""
    if settings.engine == "deterministic":
        return DeterministicReasoner()
    return PhasedReasoner(LlmReasoner(engine_for(settings, store), settings), DeterministicReasoner(), settings)
