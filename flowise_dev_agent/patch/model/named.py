"""Findings with display names: the node by its title, the field by its label."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from flowise_dev_agent.patch.model.findings import Finding, sentence, where_is_position
from flowise_dev_agent.patch.model.flow_data import InputEntry
from flowise_dev_agent.patch.model.graph import GraphIR
from flowise_dev_agent.patch.model.nested import nested_components
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.schema import Schemas
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened

_MOST_CHARS: Final = 80


def with_names(
    findings: Iterable[Finding], graph: GraphIR, schemas: Schemas, titles: Mapping[str, str] | None = None
) -> list[Finding]:
    """Name the nodes and fields of findings; ``titles`` covers nodes that are not in the flow yet."""
    return [_with_names(one, graph, schemas, titles or {}) for one in findings]


def _with_names(finding: Finding, graph: GraphIR, schemas: Schemas, titles: Mapping[str, str]) -> Finding:
    if not finding.where or where_is_position(finding.where):
        return finding
    node = graph.node(finding.where)
    title = shortened(masked((node.label if node else "") or titles.get(finding.where) or finding.where), _MOST_CHARS)
    params = {**finding.params, "node": title}
    if finding.field and node:
        params["field"] = field_label(node, finding.field, schemas) or finding.params.get("field", finding.field)
    message = sentence(finding.code, params) or finding.message
    return finding.model_copy(update={"params": params, "message": message})


def field_label(node: FlowNode, path: str, schemas: Schemas) -> str:
    """The label of a field in the editor; '' if the node type has no such field."""
    last = path.rpartition(".")[2].partition("[")[0]
    # The fields of a model or tool are beside its name, under the same name with an ending.
    names = (last, last.removesuffix("Config"))
    entries = [*_entries(node, path, schemas)]
    found = (entry for name in names for entry in entries if entry["name"] == name)
    return next((str(entry.get("label") or "") for entry in found), "")


def _entries(node: FlowNode, path: str, schemas: Schemas) -> Iterator[InputEntry]:
    """Definitions that the path may refer to, the innermost first."""
    for nested in nested_components(node.params, node.inputs):
        if path.startswith(f"{nested.path}.") and (schema := schemas.get(nested.component)):
            yield from schema.input_definitions
    schema = schemas.get(node.name)
    own = schema.input_definitions if schema else [*node.anchors, *node.params]
    if "." in path:
        for entry in own:
            yield from entry.get("array") or ()
    yield from own
    for entry in own:
        yield from entry.get("tabs") or ()
