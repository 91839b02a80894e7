"""The values that a requirement means for the fields of a node."""

import re
from dataclasses import replace
from typing import Any

from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.reasoning.deterministic.filling import fill_in
from flowise_dev_agent.reasoning.deterministic.providers import belongs, provider_of
from flowise_dev_agent.reasoning.deterministic.reading import Reading
from flowise_dev_agent.reasoning.deterministic.text import sentences, squeeze
from flowise_dev_agent.reasoning.phrases import say

_MAX_TOKENS_PARAMS = ("maxTokens", "maxTokensToSample", "maxOutputTokens", "maxCompletionTokens")
_MODEL_PARAMS = ("modelName", "model")
_NESTED_MODELS = frozenset({"llmModel", "agentModel", "conditionAgentModel"})
SYSTEM_PARAMS = ("systemMessagePrompt", "systemMessage")
_EMBEDDING_MODEL = re.compile(
    r"\b(text-embedding-[\w-]+|nomic-embed-text|mxbai-embed-large|voyage-[\w-]+)", re.IGNORECASE
)
_DEFAULT_OVERLAP = 200
#: How the prompt of a later task names the result of the one before.
STAGE_VARIABLE = "previous"
#: Samples for the person to replace.
_EXAMPLES = '[{"input": "[PLACEHOLDER: an input]", "output": "[PLACEHOLDER: its output]"}]'
#: Sentences about how to build are not part of the task that the model is given.
_ABOUT_BUILDING = re.compile(
    r"\b(?:no memory|without memory|use (?:gpt|claude|openai|anthropic|the model|a |an )|temperature|gpt-|"
    r"claude|model\b|memory needed|"
    r"kein(?:en)? (?:speicher|gedächtnis)|sin memoria|sans mémoire|sem memória|temperatur|credential)",
    re.IGNORECASE,
)
_TECHNICAL_PART = re.compile(
    r"[,;]?\s*\b(?:with|using|via|by|on|mit|con|avec|com)\s+(?:the\s+)?(?:model\s+)?"
    r"(?:gpt|claude|open ?ai|anthropic|groq|gemini|mistral|llama|ollama|deepseek)[^,;\n]*?(?=[,;\n]|\.\s|\.?$)"
    r"|[,;]?\s*\b(?:at\s+|and\s+|with\s+)?(?:a\s+)?temp(?:erature|eratura|eratur|érature)\b[^,;\n]*?\d+(?:[.,]\d+)?",
    re.IGNORECASE,
)
_REQUEST_LEAD = re.compile(
    r"^(?:please\s+)?(?:build|create|make|set up|i (?:want|need)|generate|bau(?:e|en)?|erstell(?:e|en)?|"
    r"crea(?:r)?|construye|quiero|crée[rz]?|je veux|crie|quero)?\s*"
    r"(?:me\s+|us\s+|mir\s+)?(?:an?|the|eine?n?|un[ae]?|uma?)?\s*(?:very\s+)?(?:simple|basic|small|"
    r"einfache[nrs]?|simples?|sencill[oa])?\s*"
    r"(?:llm\s*)?(?:chat ?flow|flow|chain|bot|tool|pipeline|kette|cadena|chaîne|cadeia|flujo|flux|fluxo|agent)"
    r"\s+(?:that|which|to|who|for|die|der|das|que|qui|para|pour)\s+(?:can\s+)?",
    re.IGNORECASE,
)


def parameters(
    schema: NodeSchema, reading: Reading, *, language: str, asked_only: bool = False, ordinal: int = 0
) -> dict[str, Any]:
    """Field name -> value for a node of this type; only fields that differ from what a fresh node has.

    With `asked_only` just what the text asks for, without what a new node needs besides (placeholders, templates).
    `ordinal` counts the new nodes of one type: each gets its own subject or task.
    """
    names = {param.name for param in schema.params}
    reading = _share(reading, ordinal)
    asked = {name: value for name, value in _asked(schema, reading, language).items() if value is not None}
    values = asked if asked_only else _needed(schema, reading, language) | asked
    # A path leads into the model of an agentflow node: "llmModelConfig.temperature".
    values = {name: value for name, value in values.items() if name.partition("Config.")[0] in names}
    return values if asked_only else values | fill_in(schema, values, reading)


def _share(reading: Reading, ordinal: int) -> Reading:
    """What of the text concerns the node of this number."""
    if reading.stages and ordinal < len(reading.stages):
        return replace(reading, task=reading.stages[ordinal], later=ordinal > 0)
    if reading.topics and ordinal < len(reading.topics):
        return replace(reading, topic=reading.topics[ordinal])
    return reading


def placeholder(reading: Reading, language: str) -> str:
    """The marked text that stands in for one that is not there yet."""
    return say("placeholder", language, topic=topic(reading, language))


def topic(reading: Reading, language: str) -> str:
    """What the documents are called, with an article where the language needs one."""
    if not reading.topic:
        return say("topic", language)
    return f"the {reading.topic}" if language == "en" else reading.topic


def system_prompt(reading: Reading, language: str) -> str | None:
    """The persona as a system prompt, None when the text describes none."""
    persona = reading.persona
    if persona.prompt:
        return without_braces(persona.prompt)
    parts: list[str] = []
    if persona.role:
        role = role_text(reading, language)
        parts.append(say("role", language, role=f"{_article(role)} {role}" if language == "en" else role))
    parts += persona.behaviour
    return without_braces(" ".join(parts)) or None


def role_text(reading: Reading, language: str) -> str:
    """The role with what it does: "maths tutor that explains step by step". Empty without a role."""
    if not reading.persona.role:
        return ""
    clauses = say("and", language).join(reading.persona.clauses)
    return reading.persona.role + (say("clauses", language, clauses=clauses) if clauses else "")


def _asked(schema: NodeSchema, reading: Reading, language: str) -> dict[str, Any]:
    numbers = reading.quantities
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
            return {"text": reading.inline_text, "url": reading.url, "repoLink": reading.url}
        case "Chains" | "Agents":
            prompt = system_prompt(reading, language)
            values: dict[str, Any] = dict.fromkeys(SYSTEM_PARAMS, prompt)
            if prompt and (reading.persona.behaviour or reading.persona.prompt):
                context = say("context", language)
                values["responsePrompt"] = f"{prompt}\n{context}\n------------\n{{context}}\n------------"
            values["returnSourceDocuments"] = True if reading.sources else None
            values["maxIterations"] = numbers.max_iterations
            return values
        case "Agent Flows":
            return _agentflow_values(schema, reading)
        case "Tools":
            return {"returnSourceDocuments": True if reading.sources else None}
        case _:
            return {}


def _needed(schema: NodeSchema, reading: Reading, language: str) -> dict[str, Any]:
    match schema.name:
        case "plainText":
            return {"text": placeholder(reading, language)}
        case "promptTemplate":
            if "fewShotPromptTemplate" in reading.requested:
                return {"template": "Input: {input}\nOutput: {output}"}
            if reading.prompt_text:
                return {"template": reading.prompt_text}
            variable = STAGE_VARIABLE if reading.later else "text"
            return {"template": f"{instruction(reading, language)}\n\n{{{variable}}}"}
        case "fewShotPromptTemplate":
            return {
                "examples": _EXAMPLES,
                "prefix": instruction(reading, language),
                "suffix": "Input: {text}\nOutput:",
            }
        case "chainTool":
            task = without_braces(_task(reading.text))
            return {"name": "run_chain", "description": task}
        case "promptRetriever" | "vectorStoreRetriever":
            about = topic(reading, language)
            return {
                "name": _slug(reading.topic or "general"),
                "description": say("good_for", language, topic=about),
                "systemMessage": say("expert_in", language, topic=about),
            }
        case "chatPromptTemplate":
            return {"systemMessagePrompt": instruction(reading, language), "humanMessagePrompt": "{text}"}
        case "retrieverTool":
            about = topic(reading, language)
            return {
                "name": f"search_{_slug(reading.topic or 'text')}",
                "description": say("retriever_tool", language, topic=about),
            }
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


def instruction(reading: Reading, language: str) -> str:
    """What the model is told to do: the task of a one-way flow, else who it is to be."""
    if reading.task:
        task = without_braces(f"{reading.task[:1].upper()}{reading.task[1:]}")
        return say("task", language, task=task)
    if reading.translate_to:
        return say("translate", language, language=reading.translate_to)
    if reading.structured and reading.fields:
        return say("extract", language, fields=", ".join(field.description for field in reading.fields))
    if reading.transform or reading.structured or reading.listing:
        return without_braces(say("task", language, task=_task(reading.text)))
    return system_prompt(reading, language) or say("plain", language)


def _task(text: str) -> str:
    """The requirement as an order to the model: without how to build it, in the imperative where that is easy."""
    plain = _TECHNICAL_PART.sub("", text)
    kept = [part for part in sentences(plain) if not _ABOUT_BUILDING.search(part)]
    task = squeeze(" ".join(kept or [plain]))
    order = _REQUEST_LEAD.sub("", task)
    if order != task:
        verb, _, rest = order.partition(" ")
        order = f"{_base_form(verb)} {rest}"
    return f"{order[:1].upper()}{order[1:]}"


def _base_form(verb: str) -> str:
    """English: "classifies" as "classify". Words of other languages seldom end in a single s."""
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    if re.search(r"(?:ss|sh|ch|x)es$", verb):
        return verb[:-2]
    return verb[:-1] if re.search(r"[^s]s$", verb) else verb


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40] or "text"


def _article(role: str) -> str:
    return "an" if role[:1].lower() in "aeio" else "a"


def without_braces(text: str) -> str:
    """The text with other brackets: braces are variables in Flowise's templates."""
    return text.replace("{", "(").replace("}", ")")
