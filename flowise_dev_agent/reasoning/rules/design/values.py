"""The values that a requirement means for the fields of a node."""

import re
from dataclasses import dataclass
from typing import Any

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.field_values import field_values
from flowise_dev_agent.reasoning.rules.design.filling import fill_in
from flowise_dev_agent.reasoning.rules.design.providers import belongs, provider_of
from flowise_dev_agent.reasoning.rules.design.reading import Reading

_MAX_TOKENS_PARAMS = ("maxTokens", "maxTokensToSample", "maxOutputTokens", "maxCompletionTokens")
_MODEL_PARAMS = ("modelName", "model")
_NESTED_MODELS = frozenset({"llmModel", "agentModel", "conditionAgentModel"})
#: Fields for what the model is told, by how well they fit.
PROMPT_FIELDS = ("systemMessagePrompt", "systemMessage", "responsePrompt", "template")
_EMBEDDING_MODEL = re.compile(
    r"\b(text-embedding-[\w-]+|nomic-embed-text|mxbai-embed-large|voyage-[\w-]+)", re.IGNORECASE
)
_DEFAULT_OVERLAP = 200
#: How the prompt of a later task names the result of the one before.
STAGE_VARIABLE = "previous"
#: Samples for the person to replace.
_EXAMPLES = '[{"input": "[PLACEHOLDER: an input]", "output": "[PLACEHOLDER: its output]"}]'


@dataclass(frozen=True)
class Said:
    """What a node of a flow is to hold: the reading, the words for the model, and what is its own among several."""

    reading: Reading
    prompt: str = ""
    topic: str | None = None
    url: str | None = None
    #: A later one of several chains that follow one another.
    later: bool = False


def parameters(schema: NodeSchema, said: Said, *, language: str, asked_only: bool = False) -> dict[str, Any]:
    """Field name -> value for a node of this type; only fields that differ from what a fresh node has.

    With `asked_only` just what the text asks for, without what a new node needs besides (placeholders, templates).
    """
    names = {param.name for param in schema.params}
    asked = {name: value for name, value in _asked(schema, said).items() if value is not None}
    asked |= field_values(schema, said.reading.text)
    values = asked if asked_only else _needed(schema, said, language) | _texts(schema, said) | asked
    # A path leads into the model of an agentflow node: "llmModelConfig.temperature".
    values = {name: value for name, value in values.items() if name.partition("Config.")[0] in names}
    return values if asked_only else values | fill_in(schema, values, said.reading)


def topic_of(said: Said, language: str) -> str:
    """What the documents are called, with an article where the language needs one."""
    topic = said.topic or next(iter(said.reading.topics), None)
    if not topic:
        return say("topic", language)
    return f"the {topic}" if language == "en" else topic


def prompt_field(schema: NodeSchema) -> str | None:
    """The field that holds what the model is told, None when the type has none."""
    names = {param.name for param in schema.params}
    return next(
        (name for name in PROMPT_FIELDS if name in names and (name != "template" or schema.name == "promptTemplate")),
        None,
    )


def default_text(schema: NodeSchema, field: str) -> str:
    """What a fresh node has in a text field."""
    return next((str(param.default or "") for param in schema.params if param.name == field), "")


def _texts(schema: NodeSchema, said: Said) -> dict[str, Any]:
    """The words for the model, in the field that the type has for them."""
    text = without_braces(said.reading.system_text or said.prompt)
    field = prompt_field(schema)
    if not text or field is None or schema.category not in ("Chains", "Agents"):
        return {}
    if field == "responsePrompt":
        return {field: f"{text}\n\n{default_text(schema, field)}"}
    return {field: text}


def _asked(schema: NodeSchema, said: Said) -> dict[str, Any]:
    reading, numbers = said.reading, said.reading.quantities
    match schema.category:
        case "Chat Models":
            return _model_values(schema, reading)
        case "Embeddings":
            named = _EMBEDDING_MODEL.search(reading.text)
            return {"modelName": named.group(1).lower()} if named else {}
        case "Memory":
            return {"k": numbers.memory_window, "maxTokenLimit": numbers.memory_tokens}
        case "Text Splitters":
            return _splitter_values(reading)
        case "Vector Stores":
            return {"topK": numbers.top_k}
        case "Retrievers":
            return {"topK": numbers.top_k, "minSimilarityScore": numbers.similarity}
        case "Moderation":
            return {"denyList": "\n".join(reading.denied_words) or None}
        case "Output Parsers":
            rows = [{"property": f.name, "type": f.kind, "description": f.description} for f in reading.fields]
            return {"jsonStructure": rows or None, "length": numbers.list_length}
        case "Document Loaders":
            page = said.url or next(iter(reading.urls), None)
            return {"text": reading.inline_text, "url": page, "repoLink": page}
        case "Chains" | "Agents":
            return {
                "returnSourceDocuments": True if reading.sources else None,
                "maxIterations": numbers.max_iterations,
            }
        case "Agent Flows":
            return _agentflow_values(schema, reading)
        case "Tools":
            return {"returnSourceDocuments": True if reading.sources else None}
        case _:
            return {}


def _needed(schema: NodeSchema, said: Said, language: str) -> dict[str, Any]:
    reading, about = said.reading, topic_of(said, language)
    slug = (
        re.sub(r"[^a-z0-9]+", "_", (said.topic or next(iter(reading.topics), "text")).lower()).strip("_")[:40] or "text"
    )
    task = without_braces(said.prompt) or say("plain", language)
    match schema.name:
        case "plainText":
            return {"text": say("placeholder", language, topic=about)}
        case "promptTemplate":
            if "fewShotPromptTemplate" in reading.requested:
                return {"template": "Input: {input}\nOutput: {output}"}
            if reading.prompt_text:
                return {"template": reading.prompt_text}
            return {"template": f"{task}\n\n{{{STAGE_VARIABLE if said.later else 'text'}}}"}
        case "fewShotPromptTemplate":
            return {"examples": _EXAMPLES, "prefix": task, "suffix": "Input: {text}\nOutput:"}
        case "chainTool":
            return {"name": "run_chain", "description": task}
        case "promptRetriever" | "vectorStoreRetriever":
            return {
                "name": slug,
                "description": say("good_for", language, topic=about),
                "systemMessage": say("expert_in", language, topic=about),
            }
        case "chatPromptTemplate":
            return {"systemMessagePrompt": task, "humanMessagePrompt": "{text}"}
        case "retrieverTool":
            return {"name": f"search_{slug}", "description": say("retriever_tool", language, topic=about)}
        case _:
            return _model_default(schema) if schema.category in ("Chat Models", "Embeddings") else {}


def _model_values(schema: NodeSchema, reading: Reading) -> dict[str, Any]:
    numbers = reading.quantities
    values: dict[str, Any] = {
        "temperature": numbers.temperature,
        "topP": numbers.top_p,
        # On is what a fresh node has already.
        "streaming": False if numbers.streaming is False else None,
        "allowImageUploads": numbers.image_uploads,
    }
    if reading.model and belongs(reading.model, schema.name):
        values |= dict.fromkeys(_MODEL_PARAMS, reading.model)
    names = {param.name for param in schema.params}
    limit = next((name for name in _MAX_TOKENS_PARAMS if name in names), None)
    if limit and numbers.max_tokens is not None:
        values[limit] = numbers.max_tokens
    return values


def _agentflow_values(schema: NodeSchema, reading: Reading) -> dict[str, Any]:
    """What is asked of the model inside a node, and of the node's memory."""
    found = next((name for name in (param.name for param in schema.params) if name in _NESTED_MODELS), None)
    if found is None:
        return {}
    numbers, prefix = reading.quantities, found.removesuffix("Model")
    values: dict[str, Any] = {f"{found}Config.temperature": numbers.temperature, f"{found}Config.topP": numbers.top_p}
    if reading.provider:
        values[found] = reading.provider.chat
        values[f"{found}Config.modelName"] = reading.model or reading.provider.model
    elif reading.model:
        values[f"{found}Config.modelName"] = reading.model
    if numbers.memory_window is not None:
        values |= {f"{prefix}MemoryType": "windowSize", f"{prefix}MemoryWindowSize": numbers.memory_window}
    return values


def _model_default(schema: NodeSchema) -> dict[str, Any]:
    """A model for nodes that come without one and would not run."""
    provider = provider_of(schema.name)
    for param in schema.params:
        if param.name in _MODEL_PARAMS and not param.optional and param.default in (None, "") and provider:
            return {param.name: provider.model}
    return {}


def _splitter_values(reading: Reading) -> dict[str, Any]:
    size, overlap = reading.quantities.chunk_size, reading.quantities.chunk_overlap
    if size is not None and overlap is None and size <= _DEFAULT_OVERLAP:
        # The default overlap would not be smaller than the chunk, which the splitter refuses.
        overlap = size // 10
    return {"chunkSize": size, "chunkOverlap": overlap}


def without_braces(text: str) -> str:
    """The text with other brackets: braces are variables in Flowise's templates."""
    return text.replace("{", "(").replace("}", ")")
