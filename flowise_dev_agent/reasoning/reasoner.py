"""The interface that the agent reasons through."""

from abc import ABC, abstractmethod

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
from flowise_dev_agent.schemas.plan import PatchAnswer


class Reasoner(ABC):
    """Four typed questions. Each raises `ModelUnavailableError`, `ModelAuthError` or `ModelOutputError`."""

    @abstractmethod
    async def classify(self, request: ClassifyRequest) -> Reasoned[Intent]:
        """What the person wants, how clear it is, and what to ask."""

    @abstractmethod
    async def plan(self, request: PlanRequest) -> Reasoned[PlanContract]:
        """What will be built or changed; `declined` when it cannot be done."""

    @abstractmethod
    async def patch(self, request: PatchRequest) -> Reasoned[PatchAnswer]:
        """The ops that implement the plan, what the plan lacks, or that nothing is to be done."""

    @abstractmethod
    async def judge(self, request: JudgeRequest) -> Reasoned[Verdict]:
        """Whether the answers meet the success criteria."""

    @property
    def skills_version(self) -> str | None:
        """The versions of the skill files that prompts are made of; None without any."""
        return None

    @property
    def reads_candidates(self) -> bool:
        """Whether its plans follow from the candidates and templates of a request."""
        return True

    async def aclose(self) -> None:  # noqa: B027 - only some have anything to close
        """Close connections. Closing twice is fine."""
