"""Constants and rules of flows of type AGENTFLOW (V2): execution order, branches, iterations."""

from collections.abc import Mapping

from flowise_dev_agent.patch.model.flow_data import EdgeData, NodeData, NodeType, OutputEntry, StoredEdge, Values

AGENTFLOW_CATEGORY = "Agent Flows"
#: Node types of the canvas. An iteration is drawn as a frame, with its title above.
CHATFLOW_NODE = "customNode"
CANVAS_ITERATION = "iteration"
AGENTFLOW_TYPES = frozenset({"agentFlow", CANVAS_ITERATION})
STICKY_NOTE = "stickyNote"
NOTE_NAMES = frozenset({STICKY_NOTE, "stickyNoteAgentflow"})

START = "startAgentflow"
CONDITION = "conditionAgentflow"
CONDITION_AGENT = "conditionAgentAgentflow"
HUMAN_INPUT = "humanInputAgentflow"
ITERATION = "iterationAgentflow"
HTTP = "httpAgentflow"
LOOP = "loopAgentflow"
LOOP_TARGET = "loopBackToNode"
START_STATE = "startState"

#: Node types whose branches follow from a list in their inputs.
BRANCHES_FROM: Mapping[str, str] = {CONDITION: "conditions", CONDITION_AGENT: "conditionAgentScenarios"}
#: Node types that choose the branch to run, by the number at the end of the handle.
BRANCHING = frozenset({CONDITION, CONDITION_AGENT, HUMAN_INPUT})

#: The editor's z-index of edges inside an iteration, above the iteration's box.
EDGE_INSIDE_ITERATION = 9999
_NO_COLOR = "#2196f3"


def loop_target_id(target: str) -> str:
    """Node id in `loopBackToNode`, which holds an id, or an id, a dash and a title."""
    return target.partition("-")[0]


def branch_labels(node_name: str, count: int) -> list[str]:
    """Names of a node's branches for people, first to last."""
    labels = [f"condition {number}" for number in range(count)]
    if node_name == HUMAN_INPUT and count == 2:
        return ["proceed", "reject"]
    if node_name == CONDITION and count:
        labels[-1] = "else"
    if node_name == CONDITION_AGENT:
        return [f"scenario {number}" for number in range(count)]
    return labels if count > 1 else [node_name] * count


def branch_count(node_name: str, inputs: Values) -> int | None:
    """Number of branches that the inputs define; None if they define none."""
    key = BRANCHES_FROM.get(node_name)
    items = inputs.get(key) if key else None
    if not isinstance(items, list):
        return None
    return len(items) + (node_name == CONDITION)


def branch_anchors(node_id: str, node_name: str, count: int) -> list[OutputEntry]:
    """Output anchors as the editor derives them from the list of conditions or scenarios."""
    anchors: list[OutputEntry] = [
        {"id": f"{node_id}-output-{number}", "label": number, "name": number, "description": f"Condition {number}"}
        for number in range(count)
    ]
    if node_name == CONDITION and anchors:
        anchors[-1]["description"] = "Else"
    return anchors


def output_anchors(node_type: NodeType, node_id: str) -> list[OutputEntry]:
    """Output anchors of a new node."""
    if node_type.get("hideOutput"):
        return []
    names = [str(number) for number in range(len(node_type.get("outputs") or ()))] or [node_type["name"]]
    label, name = node_type.get("label"), node_type["name"]
    return [{"id": f"{node_id}-output-{branch}", "label": label, "name": name} for branch in names]


def canvas_type(node_name: str, *, agentflow: bool) -> str:
    """The ``type`` of a node on the canvas."""
    if node_name in NOTE_NAMES:
        return STICKY_NOTE
    if not agentflow:
        return CHATFLOW_NODE
    return CANVAS_ITERATION if node_name == ITERATION else "agentFlow"


def make_edge(source: NodeData, handle: str, target: NodeData, *, inside_iteration: bool) -> StoredEdge:
    """An edge as the editor draws it, between the ``data`` of two nodes."""
    source_id, target_id = str(source.get("id")), str(target.get("id"))
    edge: StoredEdge = {
        "source": source_id,
        "sourceHandle": handle,
        "target": target_id,
        "targetHandle": target_id,
        "data": edge_data(source, handle, target),
    }
    if inside_iteration:
        edge["zIndex"] = EDGE_INSIDE_ITERATION
    return {**edge, "type": "agentFlow", "id": f"{source_id}-{handle}-{target_id}-{target_id}"}


def edge_data(source: NodeData, handle: str, target: NodeData) -> EdgeData:
    """Drawing data of an edge: the colours of its ends, and the branch label."""
    name, branch = source.get("name"), handle.rpartition("-")[2]
    data: EdgeData = {
        "sourceColor": source.get("color") or _NO_COLOR,
        "targetColor": target.get("color") or _NO_COLOR,
    }
    if name == HUMAN_INPUT:
        data["edgeLabel"] = "proceed" if branch == "0" else "reject"
    elif name in BRANCHING:
        data["edgeLabel"] = branch
    return {**data, "isHumanInput": name == HUMAN_INPUT}


def size(data: NodeData, branches: int) -> tuple[int, int]:
    """Width and height of a node in editor pixels, accurate enough to keep nodes apart."""
    if data.get("name") in NOTE_NAMES:
        return 210, 123
    if data.get("name") == ITERATION:
        return 300, 250
    return 110 + 7 * len(str(data.get("label") or "")), 72 + 20 * max(0, branches - 2)
