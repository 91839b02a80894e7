"""Steps of sequential flows and members of teams (MULTIAGENT): their names, lines and ways out."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from flowise_dev_agent.patch.model.flow_data import OutputEntry
from flowise_dev_agent.patch.model.json_text import as_dicts, inner_json
from flowise_dev_agent.patch.model.node import FlowNode

#: Branch that is taken when no row fits; code may return it too.
_END: Final = "End"
_TAB: Final = "selectedConditionFunctionTab"
_BY_ROWS, _BY_CODE = "conditionUI", "conditionFunction"
#: Inputs that take the step before.
LEADS: Final = frozenset({"sequentialNode", "llmNode", "supervisor"})
START: Final = "seqStart"
LOOP: Final = "seqLoop"
LOOP_TO: Final = "loopToName"
STATE: Final = "seqState"
CONDITIONS: Final = frozenset({"seqCondition", "seqConditionAgent"})
#: Fields of the conditions that state their branches.
BRANCHES_FROM: Final = (_BY_ROWS, _BY_CODE)
#: Steps that a conversation shows when they ran.
TOLD: Final = frozenset({"seqAgent", "seqLLMNode", "seqToolNode", "seqCustomFunction", "seqExecuteFlow", "worker"})
CATEGORIES: Final = frozenset({"Sequential Agents", "Multi Agents"})
#: Fields with the name under which a step or a member of a team runs.
NAMES: Final = (
    *("agentName", "llmNodeName", "conditionAgentName", "functionName", "seqExecuteFlowName", "toolNodeName"),
    *("conditionName", "supervisorName", "workerName"),
)
_RETURNED: Final = re.compile(r"""\breturn\s{0,9}(["'`])([^"'`\n]{1,200})\1""")


def is_step(node: FlowNode) -> bool:
    """True for a step of a sequence and a member of a team; the state is none."""
    return node.category in CATEGORIES and node.name != STATE


def name_of(node: FlowNode) -> tuple[str, str]:
    """Field and value of the name under which a step runs; empty if it has none."""
    if node.category in CATEGORIES:
        for field in NAMES:
            value = node.inputs.get(field)
            if isinstance(value, str) and value.strip():
                return field, value
    return "", ""


def folded(name: str) -> str:
    """Name of a step as Flowise compares it."""
    return name.strip().lower().replace(" ", "_")


def id_called(name: str, nodes: Iterable[FlowNode]) -> str:
    """Id of the step that runs under a name; empty if there is none."""
    wanted = folded(name)
    return next((node.id for node in nodes if wanted and is_step(node) and folded(name_of(node)[1]) == wanted), "")


def is_condition(node: FlowNode) -> bool:
    """True for a node whose outputs follow from rows or code in its tabs."""
    return any(entry.get("type") == _BY_CODE for entry in node.params)


def branch_labels(node: FlowNode) -> list[str]:
    """Labels of the branches that a condition can take, as it states them; empty if it states none."""
    if node.inputs.get(f"{_TAB}_{node.id}") == _BY_CODE:
        code = str(node.inputs.get(_BY_CODE) or "")
        return [*dict.fromkeys(label for _, label in _RETURNED.findall(code))]
    rows: Any = node.inputs.get(_BY_ROWS)
    rows = inner_json(rows) if isinstance(rows, str) else rows
    labels = [str(row.get("output") or "") for row in as_dicts(rows)]
    return [*dict.fromkeys([*filter(None, labels), _END])] if any(labels) else []


def branch_anchors(node: FlowNode, labels: Sequence[str]) -> list[OutputEntry]:
    """Output anchors of a condition with these branches, as the editor makes them."""
    options: list[OutputEntry] = [
        {
            "id": f"{node.id}-output-{name}-Condition",
            "name": name,
            "label": label,
            "type": "Condition",
            "isAnchor": True,
        }
        for name, label in sorted((_camel_case(label), label) for label in labels)
    ]
    return [{**anchor, "options": options} for anchor in node.output_anchors[:1]]


def _camel_case(label: str) -> str:
    first, *others = label.split(" ")
    return first.lower() + "".join(part[:1].upper() + part[1:].lower() for part in others)
