"""A proposed plan on its way through the passes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from flowise_dev_agent.patch import Finding, GraphIR, Schemas
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.plan import PlanContract


class PlanLookups(Protocol):
    """Questions about a plan that only the server can answer."""

    async def document_stores(self) -> list[DocumentStoreView]:
        """The document stores of the instance; none when they cannot be read."""
        ...

    async def review_plan(self, plan: PlanContract, base: GraphIR) -> list[Finding]:
        """The mistakes in the nodes and values of a plan for the flow `base`, and what the server lacks for it."""
        ...

    async def measure_stores(self, plan: PlanContract) -> PlanContract:
        """The plan with what can be known of its new document stores before they are made."""
        ...


@dataclass(frozen=True, kw_only=True)
class PlanContext:
    """A plan, what it was asked for, and what a model has to correct; a pass returns the next one.

    What the passes find is in `plan.findings`. `problems` goes back to the model only: the person sees it at the parts.
    """

    plan: PlanContract
    request: PlanRequest
    #: None where no server is asked.
    lookups: PlanLookups | None = None
    #: Code made the plan of a form, which does not know what the instance has.
    by_form: bool = False
    problems: tuple[str, ...] = ()

    @property
    def base(self) -> GraphIR:
        """The flow that the plan is for."""
        return self.request.flow.graph

    @property
    def schemas(self) -> Schemas:
        """The node types of the instance."""
        return self.request.nodes.schemas

    @property
    def is_open(self) -> bool:
        """The plan is neither declined nor an answer to a question."""
        return not self.plan.declined and self.plan.answer is None

    @property
    def words(self) -> list[str]:
        """Everything that the person said: the requirement with the answers, later words, the feedback."""
        asked = self.request
        first = " ".join([asked.requirement, *(answer for _, answer in asked.clarifications)])
        return [first, *asked.later, asked.feedback or ""]

    def having(self, plan: PlanContract) -> "PlanContext":
        """The context with the next plan."""
        return replace(self, plan=plan)

    def changed(self, **fields: Any) -> "PlanContext":
        """The context with a plan in which these fields are new."""
        return self.having(self.plan.model_copy(update=fields))

    def found(self, findings: Iterable[Finding]) -> "PlanContext":
        """The context with these findings on the plan as well."""
        return self.changed(findings=[*self.plan.findings, *findings])
