"""Interface of reasoning for the agent."""

from abc import ABC, abstractmethod

from flowise_dev_agent.planning.requests import ClassifyRequest, JudgeRequest, PatchRequest, PlanRequest, Reasoned
from flowise_dev_agent.schemas.plan import Intent, PatchAnswer, Plan
from flowise_dev_agent.schemas.verdict import Verdict


class Reasoner(ABC):
    """Four typed questions. Each may raise `ModelUnavailableError`, `ModelAuthError` or `ModelOutputError`."""

    @abstractmethod
    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        """Classify the requirement: intent, ambiguity, and clarifying questions."""

    @abstractmethod
    async def plan(self, request: PlanRequest) -> Reasoned[Plan]:
        """Plan the flow or its change; `declined` if it is not possible."""

    @abstractmethod
    async def patch(self, request: PatchRequest) -> Reasoned[PatchAnswer]:
        """Write the ops for the plan, an amendment of the plan, or nothing to do."""

    @abstractmethod
    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        """Judge the answers by the success criteria."""

    @property
    def skills_version(self) -> str | None:
        """Versions of the skill files in the prompts; None without skills."""
        return None

    @property
    def reads_candidates(self) -> bool:
        """True if plans depend on the candidates and templates of a request."""
        return True

    async def aclose(self) -> None:  # noqa: B027 - only some have anything to close
        """Close connections. Closing twice is fine."""
