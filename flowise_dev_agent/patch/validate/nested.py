"""Rules on the models and tools inside agentflow nodes."""

from collections.abc import Iterator

from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.flow_data import Values
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.patch.model.nested import CREDENTIAL_KEY, Nested, unknown_component
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.schema import NodeSchema
from flowise_dev_agent.patch.model.values import is_empty, normalize, row_example
from flowise_dev_agent.patch.model.visibility import with_defaults
from flowise_dev_agent.patch.validate.context import AGENTFLOW, FlowContext, rule
from flowise_dev_agent.patch.validate.credentials import wrong_credential
from flowise_dev_agent.patch.validate.nodes import unknown_type
from flowise_dev_agent.patch.validate.params import TAKES_ALL, is_missing, value_finding


@rule("NESTED_NODE_UNKNOWN", "NESTED_NODE_MISSING", "NESTED_CONFIG_MISSING", kinds=(AGENTFLOW,))
def components(flow: FlowContext) -> Iterator[Finding]:
    """Models and tools exist on the server, with an object of inputs next to their name."""
    for node in flow.nodes:
        yield from _rows_without_component(flow, node)
        for nested in flow.nested(node):
            if nested.component not in flow.schemas:
                yield _unknown(flow, node, nested)
            elif not isinstance(nested.config, dict):
                yield error(
                    "NESTED_CONFIG_MISSING",
                    f"The inputs of {nested.component} must be in `{nested.path}`, as an object.",
                    where=node.id,
                    field=nested.path,
                    hint=f"Use SetParam on `{nested.path.removesuffix('Config')}` of {node.id}, or on `{nested.path}`.",
                )


def _unknown(flow: FlowContext, node: FlowNode, nested: Nested) -> Finding:
    path = nested.path.removesuffix("Config")
    known = unknown_type(flow, nested.component, node.id, path, code="NESTED_NODE_UNKNOWN")
    if known.severity == "warning":
        return known
    message, hint, near = unknown_component(nested.param, nested.component, flow.schemas)
    return known.model_copy(update={"detail": message, "hint": hint, "allowed": near})


def _rows_without_component(flow: FlowContext, node: FlowNode) -> Iterator[Finding]:
    for entry in flow.visible_params(node):
        parts = [part for part in entry.get("array") or () if part.get("loadConfig") and not part.get("optional")]
        rows = node.inputs.get(entry["name"])
        if not parts or not isinstance(rows, list):
            continue
        for number, row in enumerate(rows):
            for part in parts:
                if isinstance(row, dict) and is_empty(row.get(part["name"])):
                    field = f"{entry['name']}[{number}].{part['name']}"
                    example = dump_json(row_example(entry))
                    yield error(
                        "NESTED_NODE_MISSING",
                        f"The row has no `{part['name']}`, which names the node type.",
                        where=node.id,
                        field=field,
                        hint=f"A row looks like {example}.",
                    )


@rule("NESTED_CREDENTIAL_UNBOUND", kinds=(AGENTFLOW,))
def credentials(flow: FlowContext) -> Iterator[Finding]:
    """Credentials are bound under FLOWISE_CREDENTIAL_ID in the config, the only place that the server reads."""
    for node, nested, schema, config in _configured(flow):
        bound = config.get(CREDENTIAL_KEY)
        if not is_empty(bound):
            if problem := wrong_credential(flow, schema, str(bound), node.id, nested.path):
                yield problem
        elif config.get("credential"):
            yield error(
                "CREDENTIAL_MISPLACED",
                f"The credential of {nested.component} is under `credential`, where the server does not read it.",
                where=node.id,
                field=nested.path,
                hint=_bind_hint(node, nested),
            )
        elif not schema.credential_optional:
            yield error(
                "NESTED_CREDENTIAL_UNBOUND",
                f"{nested.component} needs a credential of type {' or '.join(schema.credential_names)} and has none.",
                where=node.id,
                field=nested.path,
                hint=_bind_hint(node, nested),
            )


def _bind_hint(node: FlowNode, nested: Nested) -> str:
    return f"Use BindCredential on {node.id} with the path {nested.path}."


@rule("REQUIRED_PARAM_MISSING", kinds=(AGENTFLOW,))
def fields(flow: FlowContext) -> Iterator[Finding]:
    """Fields of models and tools, by the same rules as fields of nodes."""
    for node, nested, schema, config in _configured(flow):
        definitions = schema.definitions
        inputs = with_defaults(definitions.params, config)
        shown = definitions.visible_params(config)
        for name in dict.fromkeys(str(entry["name"]) for entry in shown if is_missing(config, entry)):
            make = warning if name in TAKES_ALL else error
            yield make(
                "REQUIRED_PARAM_MISSING",
                f"{nested.component} needs a value for `{name}`.",
                where=node.id,
                field=f"{nested.path}.{name}",
                hint=f"Use SetParam on `{nested.path}.{name}` of {node.id}.",
            )
        for entry in shown:
            problem = normalize(entry, config.get(entry["name"]), inputs)[1]
            if problem and sum(other["name"] == entry["name"] for other in shown) == 1:
                # The config does not store the version of the component that it was made for.
                lenient = problem.code == "BAD_OPTION" and flow.version_drifted(node)
                yield value_finding(problem, node.id, f"{nested.path}.{entry['name']}", lenient=lenient)


def _configured(flow: FlowContext) -> Iterator[tuple[FlowNode, Nested, NodeSchema, Values]]:
    for node in flow.nodes:
        for nested in flow.nested(node):
            schema = flow.schemas.get(nested.component)
            if schema is not None and isinstance(nested.config, dict):
                yield node, nested, schema, nested.config
