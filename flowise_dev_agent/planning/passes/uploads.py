"""Settings beside the nodes: a plan whose texts read uploaded files says which files people can upload, and no starter
question holds a secret.
"""

from dataclasses import replace
from typing import Final

from flowise_dev_agent.patch.model.findings import error
from flowise_dev_agent.patch.model.references import reads_files
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.redaction import holds_secret

_UNSAID: Final = (
    "A text reads `{{ file_attachment }}`, but `uploads` names no files: name the kinds of files that people upload, "
    "or take the variable out."
)


def uploads(context: PlanContext) -> PlanContext:
    """Find texts that read files where the plan lets nobody upload any. A flow that reads files already has settings
    of its own. A secret in a starter question is found, too: everybody who opens the chat would read it.
    """
    plan = context.plan
    if holds_secret(plan.starter_questions):
        detail = "A starter question contains a secret, which everybody who opens the chat would read."
        context = context.found([error("SECRET_IN_INPUTS", detail, field="starter_questions", hint="Take it out.")])
    reads = any(reads_files(value.value) for value in plan.values)
    has_settings = plan.uploads is None and any(reads_files(node.inputs) for node in context.base.nodes)
    if not context.is_open or plan.uploads or not reads or has_settings:
        return context
    return replace(context, problems=(*context.problems, _UNSAID))
