"""A flow described by a form: what the rules would otherwise read from a requirement."""

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, ValidationError, model_validator
from pydantic.config import JsonDict

from flowise_dev_agent.contracts.base import Contract
from flowise_dev_agent.contracts.plan import Design, PlanContract


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


_Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_said)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=32_000), AfterValidator(_said)]


def _of(*kinds: JsonValue) -> JsonDict:
    """What a form has to know of a part that only these kinds have."""
    return {"x-show": {"kind": list(kinds)}}


def _named(**titles: str) -> JsonDict:
    """How a form names the values of a choice."""
    return {"x-options": [{"const": value, "title": title} for value, title in titles.items()]}


class FormSource(Contract):
    """A source to answer from. A file is uploaded in Flowise; until then the flow holds a marked placeholder."""

    kind: Literal["text", "pdf", "csv", "docx", "web", "store"] = Field(
        json_schema_extra=_named(
            text="Text", pdf="PDF file", csv="CSV file", docx="Word file", web="Web page", store="Document store"
        )
    )
    text: str = Field(
        default="",
        max_length=32_000,
        description="The text itself, of a source of kind `text`.",
        json_schema_extra=_of("text"),
    )
    url: str = Field(
        default="",
        title="Address",
        max_length=2_000,
        description="The address, of a source of kind `web`.",
        json_schema_extra=_of("web"),
    )
    store: str = Field(
        default="",
        title="Document store",
        max_length=200,
        description="Name or id of a document store that exists, of a source of kind `store`.",
        json_schema_extra=_of("store") | {"x-lists": "document-stores"},
    )
    about: str = Field(
        default="",
        max_length=100,
        description="What it is called, for example `handbook`.",
        json_schema_extra=_of("text", "pdf", "csv", "docx", "web"),
    )

    @model_validator(mode="after")
    def _has_its_address(self) -> Self:
        if self.kind == "web" and not self.url.startswith(("http://", "https://")):
            raise ValueError("a source of kind `web` needs a `url` that begins with http:// or https://")
        if (self.kind == "store") != bool(self.store.strip()):
            raise ValueError("`store` belongs to the kind `store`, which needs it")
        return self


class FormField(Contract):
    """A field of a structured answer."""

    # A bound within the pattern would make a table of 6 MB, for each model that has this field.
    name: str = Field(pattern=r"^[A-Za-z_]\w*$", max_length=60)
    type: Literal["string", "number", "boolean"] = Field(
        default="string", json_schema_extra=_named(string="Text", number="Number", boolean="Yes or no")
    )
    description: str = Field(default="", max_length=300)


class DesignForm(Contract):
    """A new flow, part by part. What is left out is as a plain chatbot has it. `x-show` in the schema: a form asks for
    the part only where it applies. `x-options`: how a form names what can be chosen. `x-lists`: what can be chosen is
    listed at that path."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(_said)]
    kind: Literal["chat", "task", "steps"] = Field(
        default="chat",
        description="A conversation, one answer for each message, or steps that follow one another.",
        json_schema_extra=_named(chat="Conversation", task="One answer for each message", steps="Steps"),
    )
    prompt: _Text | None = Field(
        default=None, description="What the model is told, word for word.", json_schema_extra=_of("chat", "task")
    )
    model: _Name | None = Field(default=None, description="Provider or model, for example `Claude Sonnet`.")
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    memory: Literal["all", "none"] | Annotated[int, Field(ge=1, le=100)] = Field(
        default="all", description="Of how many messages; `task` has none.", json_schema_extra=_of("chat")
    )
    tools: list[_Name] = Field(
        default_factory=list,
        max_length=10,
        description="Node types or titles: `calculator`.",
        json_schema_extra=_of("chat"),
    )
    sources: list[FormSource] = Field(default_factory=list, max_length=10, json_schema_extra=_of("chat"))
    fields: list[FormField] = Field(
        default_factory=list, max_length=20, description="Of a structured answer.", json_schema_extra=_of("task")
    )
    refused_words: list[_Name] = Field(
        default_factory=list, max_length=50, title="Refused words", json_schema_extra=_of("chat", "task")
    )
    steps: list[_Name] = Field(
        default_factory=list,
        max_length=20,
        description="One sentence each, as in `sort the messages into a and b`.",
        json_schema_extra=_of("steps"),
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.kind == "steps") != bool(self.steps):
            raise ValueError("`steps` belong to the kind `steps`, which needs at least one")
        if self.fields and self.kind != "task":
            raise ValueError("`fields` belong to the kind `task`")
        if sum(source.kind == "store" for source in self.sources) > 1:
            raise ValueError("a flow answers from one document store: name one")
        if (self.tools or self.sources) and self.kind == "task":
            raise ValueError("`tools` and `sources` belong to the kind `chat`")
        return self

    def as_text(self) -> str:
        """The form in one text, for lists of sessions and for a model that looks at the result."""
        lines = [self.name, *([self.prompt] if self.prompt else []), *self.steps]
        lines += [f"Model: {self.model}"] if self.model else []
        lines += [f"Tools: {', '.join(self.tools)}"] if self.tools else []
        lines += [f"Source: {source.store or source.about or source.url or source.kind}" for source in self.sources]
        lines += [f"Fields: {', '.join(field.name for field in self.fields)}"] if self.fields else []
        return "\n".join(lines)[:32_000]


class DesignView(Design):
    """A session's flow as a design, and as a form where a form can say it."""

    form: DesignForm | None = Field(default=None, description="For building it again, step by step.")


_LOADERS: Final = {
    "pdfFile": "pdf",
    "csvFile": "csv",
    "docxFile": "docx",
    "plainText": "text",
    "cheerioWebScraper": "web",
    "documentStore": "store",
    "documentStoreVS": "store",
}
#: Types that follow from the rest of a form.
_FOLLOWS: Final = frozenset(
    {"conversationChain", "toolAgent", "conversationalRetrievalQAChain", "llmChain", "promptTemplate",
     "structuredOutputParser", "inputModerationSimple", "retrieverTool", "memoryVectorStore",
     "recursiveCharacterTextSplitter", "bufferMemory", "bufferWindowMemory"}
)  # fmt: skip
PROMPT_FIELDS: Final = ("systemMessagePrompt", "systemMessage", "responsePrompt", "template")
_CHAT_MODEL: Final = re.compile(r"chat[A-Z]|groqChat|azureChat|awsChat")
#: No tool of an agent, and nothing that a form has.
_OTHER: Final = re.compile(r"(?:Memory|Retriever|Store|Chain|Splitter|Loader|File|Parser|Cache|Template|Agent)$")


def form_of(plan: PlanContract, requirement: str) -> DesignForm | None:
    """The plan of a new flow as the form that would make it, one that was declined as a form that begins with the
    person's words; None where a form cannot say it."""
    if plan.operation != "create":
        return None
    if plan.declined:
        return _valid({"name": plan.flow_name, "prompt": requirement})
    names = [node.node_name for node in plan.nodes]
    values: dict[str, Any] = {value.param: value.value for value in plan.values}
    form: dict[str, Any] = {"name": plan.flow_name}
    if plan.flow_kind == "AGENTFLOW":
        form |= {"kind": "steps", "steps": [part.quote[:200] for part in plan.parts]}
        return _valid(form)
    others = [
        name for name in names if name not in _FOLLOWS and name not in _LOADERS and not name.endswith("Embeddings")
    ]
    chats = [name for name in others if _CHAT_MODEL.match(name)]
    tools = [name for name in others if name not in chats]
    if len(chats) != 1 or any(_OTHER.search(name) for name in tools):
        return None
    urls = [value.value for value in plan.values if value.param == "url"]
    texts = [
        value.value for value in plan.values if value.param == "text" and not str(value.value).startswith("[PLACE")
    ]
    task = "llmChain" in names
    prompt = next((str(values[name]) for name in PROMPT_FIELDS if values.get(name)), None)
    # What Flowise itself says to answer from documents comes back by itself.
    prompt = prompt.partition("\n\nI want you to act as a document")[0] if prompt else None
    stores = [str(value.value) for value in plan.values if value.param == "selectedStore"]
    form |= {
        "kind": "task" if task else "chat",
        "prompt": prompt.removesuffix("\n\n{text}") if prompt and task else prompt,
        "model": values.get("modelName") or re.sub(r"^chat|Chat", "", chats[0]),
        "temperature": values.get("temperature"),
        "memory": "none" if task else int(values["k"]) if values.get("k") else "all",
        "tools": tools,
        "sources": [
            {"kind": kind, "url": urls.pop(0) if kind == "web" and urls else "",
             "text": texts.pop(0) if kind == "text" and texts else "",
             "store": stores.pop(0) if kind == "store" and stores else ""}
            for name in names if (kind := _LOADERS.get(name))
        ],
        "fields": [
            {"name": row["property"], "type": row["type"], "description": row["description"]}
            for row in values.get("jsonStructure") or []
        ],
        "refused_words": str(values.get("denyList") or "").split("\n") if values.get("denyList") else [],
    }  # fmt: skip
    return _valid(form)


def _valid(form: dict[str, Any]) -> DesignForm | None:
    try:
        return DesignForm.model_validate(form)
    except ValidationError:
        return None
