"""Rules on models: a flow stops to answer on the day on which the provider ends its model."""

from collections.abc import Iterator
from typing import Final

from flowise_dev_agent.patch.model.findings import Finding, warning
from flowise_dev_agent.patch.model.model_uses import ModelEnd, ModelUse, model_uses
from flowise_dev_agent.patch.validate.context import FlowContext, rule

MODEL_ENDED = "MODEL_ENDED"
MODEL_ENDS = "MODEL_ENDS"
#: Codes of findings on models that have ended or end soon.
MODEL_END_CODES: Final = frozenset({MODEL_ENDED, MODEL_ENDS})


@rule(MODEL_ENDED, MODEL_ENDS)
def model_ends(flow: FlowContext) -> Iterator[Finding]:
    """Models go on to be served. With an announced end the flow will fail without a change of its own."""
    if not flow.model_ends:
        return
    for use in model_uses(flow.graph, flow.schemas):
        if end := flow.model_ends.get((use.component, use.model)):
            yield model_end_finding(use, end)


def model_end_finding(use: ModelUse, end: ModelEnd) -> Finding:
    """Warning for a model that has ended or ends soon, with the day and the model to use instead."""
    when = "ended" if end.ended else "ends"
    return warning(
        MODEL_ENDED if end.ended else MODEL_ENDS,
        f"The provider announced that {use.model} {when} on {end.day.isoformat()}.",
        where=use.where,
        field=use.field,
        hint=f"Set `{use.field}` to {end.replacement!r}." if end.replacement else "Choose a model that goes on.",
        allowed=(end.replacement,) if end.replacement else (),
        model=use.model,
        day=end.day.isoformat(),
        replacement=end.replacement or "–",
    )
