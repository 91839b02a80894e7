"""Context of a proposed plan on its way through the passes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from flowise_dev_agent.knowledge.model_ends import UsedModel
from flowise_dev_agent.patch import Finding, GraphIR, Schemas
from flowise_dev_agent.planning.requests import PlanRequest, ServerNames
from flowise_dev_agent.schemas.document_stores import DocumentStoreView
from flowise_dev_agent.schemas.plan import Plan


class ServerLookups(Protocol):
    """Questions about a plan that only the server can answer."""

    async def document_stores(self) -> list[DocumentStoreView]:
        """Document stores of the instance; empty if they cannot be read."""
        ...

    async def names(self, with_models: Sequence[str]) -> ServerNames:
        """Names that a plan may use: variables, custom tools, document stores, the models of these node types; those
        that can be read in time.
        """
        ...

    async def review_plan(self, plan: Plan, base: GraphIR) -> list[Finding]:
        """Findings on the nodes and values of a plan for the flow `base`, including features that the server lacks."""
        ...

    async def measure_stores(self, plan: Plan) -> Plan:
        """Add to the plan the figures of its new document stores that are known before they are made."""
        ...

    async def planned_models(self, plan: Plan, base: GraphIR, *, ending_only: bool) -> list[UsedModel]:
        """Models of the flow after the plan, with their ends and what the server offers; all, or those that end."""
        ...


@dataclass(frozen=True, kw_only=True)
class PlanContext:
    """Plan with its request and the problems that a model must correct; each pass returns a new context.

    Passes add findings to `plan.findings`. `problems` go back to the model only; the person sees their effect on the
    parts.
    """

    plan: Plan
    request: PlanRequest
    #: None if no server is asked.
    lookups: ServerLookups | None = None
    #: True if code made the plan from a form, which does not know the instance's resources.
    by_form: bool = False
    problems: tuple[str, ...] = ()

    @property
    def base(self) -> GraphIR:
        """Flow that the plan applies to."""
        return self.request.flow.graph

    @property
    def schemas(self) -> Schemas:
        """Node types of the instance."""
        return self.request.nodes.schemas

    @property
    def is_open(self) -> bool:
        """True if the plan is neither declined nor an answer to a question."""
        return not self.plan.declined and self.plan.answer is None

    @property
    def words(self) -> list[str]:
        """All messages of the person: the requirement with the answers, later messages, the feedback."""
        asked = self.request
        first = " ".join([asked.requirement, *(answer for _, answer in asked.clarifications)])
        return [first, *asked.later, asked.feedback or ""]

    def having(self, plan: Plan) -> "PlanContext":
        """Copy of the context with another plan."""
        return replace(self, plan=plan)

    def changed(self, **fields: Any) -> "PlanContext":
        """Copy of the context whose plan has these fields changed."""
        return self.having(self.plan.model_copy(update=fields))

    def found(self, findings: Iterable[Finding]) -> "PlanContext":
        """Copy of the context with more findings on the plan."""
        return self.changed(findings=[*self.plan.findings, *findings])
