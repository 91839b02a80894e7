"""Chains of one flow that follow one another: the prompt of each later one takes the result of the one before."""

import json
from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.contracts.plan import DesignConnection
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.patch.model.references import reference
from flowise_dev_agent.reasoning.rules.design.values import STAGE_VARIABLE

_VALUES = "promptValues"


def handed_on(nodes: Mapping[str, NodeSchema], node_id: str) -> dict[str, Any]:
    """The field of a later prompt that names the chain before, {} for every other node."""
    return next(
        (
            {_VALUES: json.dumps({STAGE_VARIABLE: reference(chain)})}
            for chain, prompt in _steps(nodes)
            if prompt == node_id
        ),
        {},
    )


def links(nodes: Mapping[str, NodeSchema]) -> list[DesignConnection]:
    """From each chain but the last to the prompt of the next one."""
    return [
        DesignConnection(source=chain, output="outputPrediction", target=prompt, input=_VALUES)
        for chain, prompt in _steps(nodes)
    ]


def _steps(nodes: Mapping[str, NodeSchema]) -> list[tuple[str, str]]:
    chains = [node_id for node_id, schema in nodes.items() if schema.name == "llmChain"]
    prompts = [node_id for node_id, schema in nodes.items() if schema.name == "promptTemplate"]
    if len(chains) < 2 or len(chains) != len(prompts):
        return []
    return list(zip(chains, prompts[1:], strict=False))
