"""Plan of a chatflow from a form of the kind `chat` or `task`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from flowise_dev_agent.forms.defaults import PLAIN_TASK, check_filled, parameters, without_braces
from flowise_dev_agent.forms.offer import DeclinedError, Offer
from flowise_dev_agent.forms.providers import default_embeddings, default_provider, named_model
from flowise_dev_agent.forms.wiring import complete, wire
from flowise_dev_agent.knowledge.credential_requirements import required_types
from flowise_dev_agent.patch import NodeSchema
from flowise_dev_agent.schemas.designs import PROMPT_FIELDS, DesignForm
from flowise_dev_agent.schemas.form_parts import FormSource
from flowise_dev_agent.schemas.plan import Plan, PlannedNode, PlannedValue
from flowise_dev_agent.texts import text

#: Kind of source -> node type of its loader.
LOADERS: Final[Mapping[str, str]] = {
    "text": "plainText",
    "pdf": "pdfFile",
    "csv": "csvFile",
    "docx": "docxFile",
    "txt": "textFile",
    "web": "cheerioWebScraper",
    "store": "documentStore",
}
#: Instruction for Flowise beside the user's text if it answers from documents.
FROM_DOCUMENTS: Final = "Answer from this context; what it does not say, do not make up:\n{context}"
#: Class of a required input -> default node type; models and embeddings are the provider's.
_DEFAULTS: Final = {
    "BaseMemory": "bufferMemory",
    "BaseChatMemory": "bufferMemory",
    "BaseRetriever": "memoryVectorStore",
    "VectorStore": "memoryVectorStore",
    "VectorStoreRetriever": "memoryVectorStore",
    "BasePromptTemplate": "promptTemplate",
    "PromptTemplate": "promptTemplate",
    "Document": "plainText",
    "TextSplitter": "recursiveCharacterTextSplitter",
}
_MOST_VALUES: Final = 100


def chatflow_plan(form: DesignForm, offer: Offer, *, ready: Mapping[str, NodeSchema], taken: Mapping[str, str]) -> Plan:
    """Build the plan of a form of the kind `chat` or `task`, without its texts.

    `ready` are tools (id -> type) that are added to the plan later, `taken` the nodes (id -> name) of an accepted flow
    that a plan may start from.

    Raises:
        DeclinedError: this Flowise lacks something that the form names.
    """
    provider, model = named_model(form.model, offer)
    chosen = provider or default_provider(offer, with_embeddings=bool(form.sources))
    tools = list(dict.fromkeys(offer.tool(name).name for name in form.tools))
    names = _node_names(form, offer, tools, has_ready=bool(ready))
    defaults = _DEFAULTS | dict.fromkeys(("BaseChatModel", "BaseLanguageModel"), chosen.chat)
    defaults["Embeddings"] = chosen.embeddings or default_embeddings(offer)
    ids = _fresh_ids(complete(names, offer.store.schemas, defaults), taken)
    nodes = {id_: offer.schema(name) for id_, name in ids.items()}
    _check_wired({**nodes, **ready})
    values = _values(form, nodes, model)
    check_filled((nodes[id_], own) for id_, own in values.items())
    return Plan(
        goal="",
        operation="create",
        flow_name=form.name,
        nodes=[
            PlannedNode(node_id=id_, node_name=name, purpose="", existing=taken.get(id_) == name)
            for id_, name in ids.items()
        ],
        values=[
            PlannedValue(node_id=id_, param=name, value=value)
            for id_, own in values.items()
            for name, value in own.items()
        ][:_MOST_VALUES],
        credential_requirements=required_types(nodes.values(), offer.credentials),
    )


def _node_names(form: DesignForm, offer: Offer, tools: Sequence[str], *, has_ready: bool) -> list[str]:
    """Node types in the order of the plan, the ending node first; required inputs are completed later."""
    remembers = form.kind == "chat" and form.memory != "none"
    if tools or has_ready:
        ending = offer.schema("toolAgent")
    elif form.sources:
        ending = offer.schema("conversationalRetrievalQAChain")
    else:
        # Every conversation node requires a memory.
        ending = offer.schema("conversationChain" if remembers else "llmChain")
    names = [ending.name]
    if remembers and _takes(ending, "BaseMemory", "BaseChatMemory"):
        names.append("bufferWindowMemory" if isinstance(form.memory, int) else "bufferMemory")
    names += tools
    names += ["structuredOutputParser"] if form.fields else []
    if form.sources:
        names += [*["retrieverTool"] * _takes(ending, "Tool"), "memoryVectorStore"]
        loaders = [LOADERS[source.kind] for source in form.sources]
        splits = any(_takes(offer.schema(name), "TextSplitter") for name in loaders)
        names += [*loaders, *["recursiveCharacterTextSplitter"] * splits]
    return names + ["inputModerationSimple"] * (bool(form.refused_words) and _takes(ending, "Moderation"))


def _takes(schema: NodeSchema, *classes: str) -> bool:
    """True if an input of the node takes one of these classes."""
    return any(set(classes) & set(anchor.types) for anchor in schema.anchors if not anchor.show)


def _check_wired(nodes: Mapping[str, NodeSchema]) -> None:
    wiring = wire(nodes)
    for node_id, anchor in wiring.unmet:
        raise DeclinedError(text("declined.needs_input", node=nodes[node_id].label, input=anchor))
    for node_id in wiring.loose:
        raise DeclinedError(text("declined.not_taken", node=nodes[node_id].label))


def _values(form: DesignForm, nodes: Mapping[str, NodeSchema], model: str | None) -> dict[str, dict[str, Any]]:
    """Values by node id; each of several loaders of one type gets its own source."""
    seen = Counter[str]()
    found: dict[str, dict[str, Any]] = {}
    for id_, schema in nodes.items():
        sources = [source for source in form.sources if LOADERS[source.kind] == schema.name]
        source = sources[seen[schema.name]] if sources else None
        seen[schema.name] += 1
        found[id_] = parameters(schema, _form_values(form, schema, model, source))
    return found


def _form_values(form: DesignForm, schema: NodeSchema, model: str | None, source: FormSource | None) -> dict[str, Any]:
    """Values of a node's fields from the form."""
    asked: dict[str, Any] = {}
    match schema.category:
        case "Chat Models":
            asked = {"modelName": model, "model": model, "temperature": form.temperature}
        case "Memory":
            asked = {"k": form.memory if isinstance(form.memory, int) else None}
        case "Moderation":
            asked = {"denyList": "\n".join(form.refused_words)}
        case "Output Parsers":
            rows = [
                {"property": one.name, "type": one.type, "description": one.description or one.name}
                for one in form.fields
            ]
            asked = {"jsonStructure": rows}
        case "Document Loaders" if source:
            asked = {"text": source.text, "url": source.url, "selectedStore": source.store}
        case "Chains" | "Agents":
            asked = _prompt_fields(form, schema)
        case "Prompts":
            asked = {"template": f"{without_braces(form.prompt or PLAIN_TASK)}\n\n{{text}}"}
        case "Tools" if schema.name == "retrieverTool":
            topics = [one.about for one in form.sources if one.about]
            asked = _retriever_names(topics[0]) if len(topics) == 1 else {}
        case _:
            pass
    return {name: value for name, value in asked.items() if value not in (None, "", [])}


def prompt_field(schema: NodeSchema) -> str | None:
    """The prompt field of a node type; None if the type has none."""
    names = {param.name for param in schema.params}
    found = (name for name in PROMPT_FIELDS if name in names)
    return next((name for name in found if name != "template" or schema.name == "promptTemplate"), None)


def _prompt_fields(form: DesignForm, schema: NodeSchema) -> dict[str, Any]:
    field, prompt = prompt_field(schema), without_braces(form.prompt or "")
    if not prompt or field is None:
        return {}
    return {field: f"{prompt}\n\n{FROM_DOCUMENTS}" if field == "responsePrompt" else prompt}


def _retriever_names(topic: str) -> dict[str, str]:
    plain = "".join(char if char.isascii() and char.isalnum() else " " for char in topic.lower())
    slug = "_".join(plain.split())[:40] or "text"
    return {
        "name": f"search_{slug}",
        "description": f"Searches the {topic}. Use it for every question about the {topic}.",
    }


def _fresh_ids(names: Sequence[str], taken: Mapping[str, str]) -> dict[str, str]:
    """Ids -> node types; a reused node keeps its id, each one once."""
    ids, free = dict[str, str](), dict(taken)
    for name in names:
        reused = next((id_ for id_, other in free.items() if other == name), None)
        free.pop(reused or "", None)
        ids[reused or next(id_ for n in count() if (id_ := f"{name}_{n}") not in {*ids, *taken})] = name
    return ids
