"""Things that only the person can do: placeholders to fill, files and variables to supply, credentials to choose."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from flowise_dev_agent.patch import GraphIR, Schemas
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.planning.passes.feasibility import VARIABLE_TO_CREATE
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.schemas.plan_text import credential_name, in_words
from flowise_dev_agent.testing.checks import settings_in
from flowise_dev_agent.texts import text

#: Most things that are listed, and most characters of each.
_MOST, _SHOWN = 30, 200
_PLACEHOLDER: Final = re.compile(re.escape(MARK) + r":?\s*([^\]]{0,500})")


def to_do(
    plan: Plan, graph: GraphIR, titles: Mapping[str, str], schemas: Schemas, credentials: Iterable[str]
) -> list[str]:
    """A sentence for each thing, with its place. `credentials` are the types that are still to be chosen."""
    found = list(_to_fill(graph, titles, schemas))
    filled = " ".join(found)
    for promised in plan.placeholders:
        place, _, what = promised.rpartition(": ")
        if shortened(what.removeprefix(f"{MARK}: ").rstrip("]"), _SHOWN) not in filled:
            node_id, _, param = place.partition(".")
            known = node_id in titles and param
            found.append(
                text("to_do.fill", node=titles[node_id], field=in_words(param), what=what)
                if known
                else text("to_do.give", what=promised)
            )
    for type_ in credentials:
        nodes = ", ".join(
            titles.get(node.id, node.label)
            for node in graph.nodes
            if (schema := schemas.get(node.name)) and type_ in schema.credential_names and not node.credential
        )
        name = credential_name(type_)
        found.append(
            text("to_do.credential_for", type=name, nodes=nodes) if nodes else text("to_do.credential", type=name)
        )
    for finding in plan.findings:
        if finding.code == VARIABLE_TO_CREATE:
            node = titles.get(finding.where, finding.where)
            found.append(text("to_do.variable", name=finding.params["name"], node=node))
    return list(dict.fromkeys(found))[:_MOST]


def _to_fill(graph: GraphIR, titles: Mapping[str, str], schemas: Schemas) -> Iterator[str]:
    for node in graph.nodes:
        schema = schemas.get(node.name)
        labels = {entry["name"]: str(entry.get("label") or "") for entry in schema.input_definitions} if schema else {}
        for name, value in settings_in(node.inputs):
            # The values of rows and settings that are stored as JSON text come by themselves.
            as_json = isinstance(value, str) and value[:1] in ("[", "{") and not value.startswith(MARK)
            if not isinstance(value, str) or as_json or not (MARK in value or stands_in(value)):
                continue
            where = {"node": titles.get(node.id, node.label), "field": labels.get(name) or in_words(name)}
            if value.startswith("data:"):
                yield text("to_do.file", **where)
            else:
                for what in _PLACEHOLDER.findall(value):
                    yield text("to_do.fill", **where, what=shortened(what.strip(), _SHOWN))
