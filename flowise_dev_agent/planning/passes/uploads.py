"""Uploads: a plan whose texts read uploaded files says which files people can upload."""

from dataclasses import replace
from typing import Final

from flowise_dev_agent.patch.model.references import reads_files
from flowise_dev_agent.planning.context import PlanContext

_UNSAID: Final = (
    "A text reads `{{ file_attachment }}`, but `uploads` names no files: name the kinds of files that people upload, "
    "or take the variable out."
)


def uploads(context: PlanContext) -> PlanContext:
    """Find texts that read files where the plan lets nobody upload any. A flow that reads files already has settings
    of its own.
    """
    plan = context.plan
    reads = any(reads_files(value.value) for value in plan.values)
    has_settings = plan.uploads is None and any(reads_files(node.inputs) for node in context.base.nodes)
    if not context.is_open or plan.uploads or not reads or has_settings:
        return context
    return replace(context, problems=(*context.problems, _UNSAID))
