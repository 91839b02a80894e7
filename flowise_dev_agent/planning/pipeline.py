"""Planning pipeline: the passes of a proposed plan, in order, once per proposal."""

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import Final, TypeAlias

from flowise_dev_agent.planning.context import PlanContext, ServerLookups
from flowise_dev_agent.planning.passes.attached import attached_files
from flowise_dev_agent.planning.passes.coverage import missing_resources, uncovered_parts
from flowise_dev_agent.planning.passes.custom_tools import custom_tools
from flowise_dev_agent.planning.passes.document_stores import document_stores, measured_stores
from flowise_dev_agent.planning.passes.examples import examples
from flowise_dev_agent.planning.passes.feasibility import (
    SERVER_PACKAGE,
    SERVER_SETTING,
    VARIABLE_TO_CREATE,
    feasibility,
    lacking_variables,
)
from flowise_dev_agent.planning.passes.files_to_come import files_to_come
from flowise_dev_agent.planning.passes.idle_settings import idle_settings
from flowise_dev_agent.planning.passes.images import images
from flowise_dev_agent.planning.passes.lines import lines
from flowise_dev_agent.planning.passes.mappings import mappings
from flowise_dev_agent.planning.passes.model_ends import current_models, default_models, ending_models
from flowise_dev_agent.planning.passes.personal_data import personal_data
from flowise_dev_agent.planning.passes.planned_values import form_addresses, planned_values
from flowise_dev_agent.planning.passes.ready_tools import NO_AGENT, ready_tools
from flowise_dev_agent.planning.passes.replaced_sources import replaced_sources
from flowise_dev_agent.planning.passes.required_models import required_models
from flowise_dev_agent.planning.passes.started_tests import started_tests
from flowise_dev_agent.planning.passes.target import BUILT_AS_AGENTFLOW, target
from flowise_dev_agent.planning.passes.uploads import uploads
from flowise_dev_agent.planning.requests import PlanRequest, ReviewedPlan
from flowise_dev_agent.schemas.plan import Plan

Pass: TypeAlias = Callable[[PlanContext], PlanContext | Awaitable[PlanContext]]

#: Passes of a plan that code makes from a form.
OF_FORM: Final[Sequence[Pass]] = (
    target,
    form_addresses,
    document_stores,
    ready_tools,
    images,
    current_models,
    lacking_variables,
)
#: Passes of each plan that a model proposes: their problems go back to it.
OF_PROPOSAL: Final[Sequence[Pass]] = (
    target,
    replaced_sources,
    planned_values,
    lines,
    document_stores,
    custom_tools,
    ready_tools,
    images,
    uploads,
    required_models,
    current_models,
    feasibility,
    missing_resources,
    uncovered_parts,
)
#: Passes of the final plan, before the person sees it.
OF_TAKEN_PLAN: Final[Sequence[Pass]] = (
    mappings,
    attached_files,
    examples,
    measured_stores,
    files_to_come,
    personal_data,
    default_models,
    idle_settings,
    ending_models,
    started_tests,
)
#: A model cannot correct these: the person has to say what they want, or to do it.
_FOR_THE_PERSON: Final = frozenset({BUILT_AS_AGENTFLOW, NO_AGENT, VARIABLE_TO_CREATE, SERVER_PACKAGE, SERVER_SETTING})


async def passed(context: PlanContext, passes: Sequence[Pass]) -> PlanContext:
    """Run the passes, and return the resulting context."""
    for one in passes:
        result = one(context)
        context = await result if isawaitable(result) else result
    return context


class Review:
    """Review of a proposal for the reasoner, which asks its model again while the passes find problems."""

    def __init__(self, lookups: ServerLookups | None = None) -> None:
        self._lookups = lookups

    async def __call__(self, plan: Plan, request: PlanRequest) -> ReviewedPlan:
        context = await passed(PlanContext(plan=plan, request=request, lookups=self._lookups), OF_PROPOSAL)
        told = [finding.text for finding in context.plan.findings if finding.code not in _FOR_THE_PERSON]
        return ReviewedPlan(context.plan, (*told, *context.problems))
