"""Which value a text gives for which field of which node."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.values import Said, parameters
from flowise_dev_agent.reasoning.rules.language.text import normalised


@pytest.mark.parametrize(
    ("text", "node", "expected"),
    [
        ("max tokens 300 please", "chatOpenAI", {"maxTokens": 300}),
        ("máximo de 350 tokens", "chatOpenAI", {"maxTokens": 350}),
        ("limit 500 tokenów", "chatAnthropic", {"maxTokensToSample": 500}),
        ("maximaal 250 tokens per antwoord", "chatMistralAI", {"maxOutputTokens": 250}),
        ("最大トークンは200。", "chatOpenAI", {"maxTokens": 200}),
        ("once the history exceeds 1500 tokens", "chatOpenAI", {}),
        ("once the history exceeds 1500 tokens", "conversationSummaryBufferMemory", {"maxTokenLimit": 1500}),
        ("limit 500 tokenów", "confluence", {}),
        ("limit pętli na 5", "loopAgentflow", {"maxLoopCount": 5}),
        ("Begrenze die Schleife auf 4", "loopAgentflow", {"maxLoopCount": 4}),
        ("set the loop limit to 3", "loopAgentflow", {"maxLoopCount": 3}),
        ("prends les 8 meilleurs extraits", "memoryVectorStore", {"topK": 8}),
        ("topP a 0,8", "chatOpenAI", {"topP": 0.8}),
        ("split it into chunks of 150", "recursiveCharacterTextSplitter", {"chunkSize": 150, "chunkOverlap": 15}),
    ],
)
def test_a_value_goes_into_the_field_that_the_text_means(
    text: str, node: str, expected: dict[str, Any], catalogue: NodeStore
) -> None:
    reading: Reading = read(normalised(text), catalogue)
    assert parameters(catalogue.schemas[node], Said(reading), language="en", asked_only=True) == expected
