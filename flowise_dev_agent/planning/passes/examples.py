"""Example pairs attached to a requirement become lines of the matching prompt."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final

from flowise_dev_agent.patch import Finding, GraphIR, Schemas
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.designs import PROMPT_FIELDS
from flowise_dev_agent.schemas.plan import Part, Plan, PlannedValue

#: Code of a finding on examples that no prompt takes, or more than one could.
EXAMPLES_UNUSED: Final = "EXAMPLES_UNUSED"
#: End of a template, which holds the user's message: examples go before it.
_TEMPLATE: Final = "template"
#: Shorter labels occur in texts by chance.
_SHORTEST_NAME: Final = 3
_SENTENCES: Final = re.compile(r"[!?\n;]+|\.\s|,\s")
_EXAMPLES: Final = re.compile(r"example|beispiel|exemple|ejemplo|exemplo|esemp|voorbeeld|przykład", re.IGNORECASE)
#: The steps of agentflows with messages.
_STEPS: Final = {"llmAgentflow": "llmMessages", "agentAgentflow": "agentMessages"}


def examples(context: PlanContext) -> PlanContext:
    """Write the attached examples into the matching prompt."""
    plan = with_examples(context.plan, context.base, context.schemas, context.request.attachments, context.words)
    return context.having(plan)


def with_examples(
    plan: Plan,
    base: GraphIR,
    schemas: Schemas,
    attachments: Sequence[AttachmentFacts],
    said: Sequence[str] = (),
) -> Plan:
    """Add the pairs of attached files to the plan's only prompt, or to the one whose node the file name or the person
    names. If none matches, a warning asks for it.
    """
    files = [one for one in attachments if one.examples]
    if not files or plan.declined or plan.answer is not None:
        return plan
    plan = plan.model_copy(update={"findings": [one for one in plan.findings if one.code != EXAMPLES_UNUSED]})
    places = list(dict.fromkeys(_prompts(plan, base, schemas)))
    labels = _labels(plan, base)
    names = _names(plan, base, schemas, places, labels)
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = {}
    unused: list[str] = []
    for file in files:
        place = places[0] if len(places) == 1 else _place_for(file, names, said)
        if place is None:
            unused.append(file.name)
        else:
            pairs.setdefault(place, []).extend(file.examples)
    for place, found in pairs.items():
        plan = _with_lines(plan, place, _lines(found, in_template=place[1] in PROMPT_FIELDS), base, schemas)
    if unused:
        choices = ", ".join(f"{labels.get(node_id) or 'a prompt'} (`{node_id}`)" for node_id, _ in places)
        finding = Finding(
            code=EXAMPLES_UNUSED,
            severity="warning",
            detail=f"The examples in {', '.join(unused)} are not used: this flow has "
            + (f"{len(places)} prompts for them: {choices}." if places else "no prompt for them."),
            params={"files": unused},
            hint="Say which step they are for.",
        )
        return plan.model_copy(update={"findings": [*plan.findings, finding]})
    return _with_parts(plan, places, names) if len(places) > 1 else plan


def _labels(plan: Plan, base: GraphIR) -> dict[str, str]:
    return {node.id: node.label for node in base.nodes} | {one.node_id: one.label for one in plan.nodes if one.label}


def _names(
    plan: Plan,
    base: GraphIR,
    schemas: Schemas,
    places: Sequence[tuple[str, str]],
    labels: Mapping[str, str],
) -> dict[tuple[str, str], set[str]]:
    """Names by which people may refer to each prompt's node, without ambiguous ones."""
    types = {node.id: node.name for node in base.nodes} | {node.node_id: node.node_name for node in plan.nodes}
    found: dict[tuple[str, str], set[str]] = {}
    for place in places:
        schema = schemas.get(types[place[0]])
        known = {place[0], labels.get(place[0], ""), schema.label if schema else ""}
        found[place] = {name.casefold() for name in known if len(name) >= _SHORTEST_NAME}
    every = [name for known in found.values() for name in known]
    return {place: {name for name in known if every.count(name) == 1} for place, known in found.items()}


def _place_for(
    file: AttachmentFacts, names: Mapping[tuple[str, str], Set[str]], said: Sequence[str]
) -> tuple[str, str] | None:
    stem = re.sub(r"[\W_]+", " ", file.name.rpartition(".")[0]).casefold()
    sentences = [one.casefold() for text in said for one in _SENTENCES.split(text) if _EXAMPLES.search(one)]
    for texts in ([stem], [one for one in reversed(sentences) if file.name.casefold() in one], [*reversed(sentences)]):
        for text in texts:
            found = [place for place, known in names.items() if any(_is_in(name, text) for name in known)]
            if len(found) == 1:
                return found[0]
    return None


def _with_parts(plan: Plan, places: Sequence[tuple[str, str]], names: Mapping[tuple[str, str], Set[str]]) -> Plan:
    """Mark the parts about the examples as covered."""
    parts: list[Part] = []
    for part in plan.parts:
        quote = part.quote.casefold()
        to = [place for place in places if any(_is_in(name, quote) for name in names[place])]
        if part.state == "not_understood" and len(to) == 1 and _EXAMPLES.search(quote):
            part = part.model_copy(update={"state": "covered", "values": [".".join(to[0])], "reason": ""})
        parts.append(part)
    return plan.model_copy(update={"parts": parts})


def _is_in(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _with_lines(plan: Plan, place: tuple[str, str], lines: str, base: GraphIR, schemas: Schemas) -> Plan:
    node_id, param = place
    node = base.node(node_id)
    planned = next((one for one in plan.values if (one.node_id, one.param) == place), None)
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
    """Format example pairs for a prompt, escaping braces."""
    text = "\n\n".join(f"Input: {given}\nOutput: {wanted}" for given, wanted in pairs)
    text = text.replace("{", "{{").replace("}", "}}") if in_template else text.replace("{{", "{ {")
    return f"Examples of what is wanted:\n\n{text}"


def _prompts(plan: Plan, base: GraphIR, schemas: Schemas) -> Iterator[tuple[str, str]]:
    """Yield (node, field) of each prompt in the plan, else in the flow."""
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


def _default(plan: Plan, node_id: str, param: str, schemas: Schemas) -> Any:
    name = next((node.node_name for node in plan.nodes if node.node_id == node_id), "")
    schema = schemas.get(name)
    entries = schema.input_definitions if schema else ()
    return next((entry.get("default") for entry in entries if entry["name"] == param), None)


def _holds(row: Any, lines: str) -> bool:
    return isinstance(row, dict) and row.get("content") == lines
