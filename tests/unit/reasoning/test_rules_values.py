"""Which value a text gives for which field of which node."""

from typing import Any

import pytest

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.values import Said, exchanged, parameters
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
        ("prends les 8 meilleurs extraits", "memoryVectorStore", {"topK": 8}),
        ("topP a 0,8", "chatOpenAI", {"topP": 0.8}),
        ("baja el solapamiento de los trozos a 50", "recursiveCharacterTextSplitter", {"chunkOverlap": 50}),
        ("change the temp to 0", "chatOpenAI", {"temperature": 0}),
        ("streaming off", "chatOpenAI", {"streaming": False}),
        ("Streaming bitte ausschalten", "chatOpenAI", {"streaming": False}),
        ("schalte das Streaming ein", "chatOpenAI", {"streaming": True}),
        ("desactiva el streaming", "chatOpenAI", {"streaming": False}),
        ("zet streaming uit", "chatOpenAI", {"streaming": False}),
        ("turn on return source documents", "conversationalRetrievalQAChain", {"returnSourceDocuments": True}),
        ("split it into chunks of 150", "recursiveCharacterTextSplitter", {"chunkSize": 150, "chunkOverlap": 15}),
    ],
)
def test_a_value_goes_into_the_field_that_the_text_means(
    text: str, node: str, expected: dict[str, Any], catalogue: NodeStore
) -> None:
    reading: Reading = read(normalised(text), catalogue)
    assert parameters(catalogue.schemas[node], Said(reading), language="en", asked_only=True) == expected


@pytest.mark.parametrize(
    ("text", "node", "expected"),
    [
        ("splitter: by tokens, 900 / 90", "recursiveCharacterTextSplitter", {"chunkSize": 900, "chunkOverlap": 90}),
        ("cut it finer please, smaller chunks, 700", "recursiveCharacterTextSplitter", {"chunkSize": 700}),
        ("larger pieces, 1400 with 200 overlap", "recursiveCharacterTextSplitter",
         {"chunkSize": 1400, "chunkOverlap": 200}),
        ("La creatividad puede bajar un poco, a unos 0,4.", "chatOpenAI", {"temperature": 0.4}),
        ("Smaller chunks, and 3 sentences at most.", "recursiveCharacterTextSplitter", {}),
        ("Fetch more passages, in 3 languages.", "memoryVectorStore", {}),
        ("The bike costs 900 and the helmet 90.", "recursiveCharacterTextSplitter", {}),
    ],
)  # fmt: skip
def test_a_number_is_for_what_the_second_reader_hears(
    text: str, node: str, expected: dict[str, Any], catalogue: NodeStore
) -> None:
    reading = read(normalised(text), catalogue)
    assert parameters(catalogue.schemas[node], Said(reading), language="en", asked_only=True) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sube los resultados de búsqueda de 4 a 8", {"topK": 8}),
        ("6 statt 4 Textstellen", {"topK": 6}),
        ("raise it from 3 to 8", {}),
        ("the price goes from 4 to 8 euros", {}),
    ],
)
def test_a_number_in_the_place_of_another_is_for_the_field_that_holds_it(
    text: str, expected: dict[str, Any], catalogue: NodeStore
) -> None:
    store = catalogue.schemas["memoryVectorStore"]
    reading = exchanged(read(normalised(text), catalogue), [(store, {"topK": "4"})])
    assert parameters(store, Said(reading), language="en", asked_only=True) == expected
