"""Examples that go with a requirement become lines of the prompt that they are for."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from flowise_dev_agent.contracts.attachments import AttachmentFacts
from flowise_dev_agent.contracts.designs import PROMPT_FIELDS
from flowise_dev_agent.contracts.plan import PlanContract, PlannedValue
from flowise_dev_agent.patch import Finding, GraphIR, Schemas

#: Code of a finding on examples that no prompt takes, or more than one could.
EXAMPLES_UNUSED: Final = "EXAMPLES_UNUSED"
#: What the text of a template ends with is the message of the person: examples go before it.
_TEMPLATE: Final = "template"
#: The steps of agentflows with messages.
_STEPS: Final = {"llmAgentflow": "llmMessages", "agentAgentflow": "agentMessages"}


def with_examples(
    plan: PlanContract, base: GraphIR, schemas: Schemas, attachments: Sequence[AttachmentFacts]
) -> PlanContract:
    """The plan with the pairs of such files in its one prompt; with none or several prompts a warning asks which."""
    pairs = [pair for one in attachments for pair in one.examples]
    if not pairs or plan.declined or plan.answer is not None:
        return plan
    plan = plan.model_copy(update={"findings": [one for one in plan.findings if one.code != EXAMPLES_UNUSED]})
    places = list(dict.fromkeys(_prompts(plan, base, schemas)))
    if len(places) != 1:
        names = ", ".join(one.name for one in attachments if one.examples)
        finding = Finding(
            code=EXAMPLES_UNUSED,
            severity="warning",
            message=f"The examples in {names} are not used: this flow has {len(places) or 'no'} prompts for them.",
            hint="Say which step they are for.",
        )
        return plan.model_copy(update={"findings": [*plan.findings, finding]})
    ((node_id, param),) = places
    lines = _lines(pairs, in_template=param in PROMPT_FIELDS)
    node = base.node(node_id)
    planned = next((one for one in plan.values if (one.node_id, one.param) == (node_id, param)), None)
    if planned is None and node is not None:
        old = node.inputs.get(param)
    else:
        old = planned.value if planned else _default(plan, node_id, param, schemas)
    if lines in str(old) or (isinstance(old, list) and any(_holds(row, lines) for row in old)):
        return plan
    new: Any = f"{lines}\n\n{old}" if param == _TEMPLATE else f"{old or ''}\n\n{lines}".strip()
    if param in _STEPS.values():
        new = [*(old if isinstance(old, list) else []), {"role": "system", "content": lines}]
    mode = planned.mode if planned else "set"
    values = [one for one in plan.values if one is not planned]
    values.append(PlannedValue(node_id=node_id, param=param, value=new, mode=mode))
    return plan.model_copy(update={"values": values})


def _lines(pairs: Sequence[tuple[str, str]], *, in_template: bool) -> str:
    """The pairs as a prompt says them; braces of theirs are no variables."""
    text = "\n\n".join(f"Input: {given}\nOutput: {wanted}" for given, wanted in pairs)
    text = text.replace("{", "{{").replace("}", "}}") if in_template else text.replace("{{", "{ {")
    return f"Examples of what is wanted:\n\n{text}"


def _prompts(plan: PlanContract, base: GraphIR, schemas: Schemas) -> Iterator[tuple[str, str]]:
    """(node, field) of each prompt: in the plan, else in the flow."""
    nodes = {node.id: node.name for node in base.nodes if node.id not in plan.removals}
    nodes |= {node.node_id: node.node_name for node in plan.nodes if not node.existing}
    template = any("romptTemplate" in name for name in nodes.values())
    for node_id, name in nodes.items():
        schema = schemas.get(name)
        if name in _STEPS:
            yield node_id, _STEPS[name]
        elif schema is not None and (not template or "romptTemplate" in name):
            known = {entry["name"] for entry in schema.input_definitions}
            yield from ((node_id, field) for field in PROMPT_FIELDS if field in known)


def _default(plan: PlanContract, node_id: str, param: str, schemas: Schemas) -> Any:
    name = next((node.node_name for node in plan.nodes if node.node_id == node_id), "")
    schema = schemas.get(name)
    entries = schema.input_definitions if schema else ()
    return next((entry.get("default") for entry in entries if entry["name"] == param), None)


def _holds(row: Any, lines: str) -> bool:
    return isinstance(row, dict) and row.get("content") == lines
