"""The design of a new flow from a form: the same parts as from words, named one by one."""

from dataclasses import replace

from flowise_dev_agent.contracts.designs import DesignForm
from flowise_dev_agent.contracts.plan import Design
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.contracts import PlanRequest
from flowise_dev_agent.reasoning.phrases import say
from flowise_dev_agent.reasoning.rules.design.build import declined, designed
from flowise_dev_agent.reasoning.rules.design.fields import Field
from flowise_dev_agent.reasoning.rules.design.providers import chat_provider, model_id
from flowise_dev_agent.reasoning.rules.design.quantities import Quantities
from flowise_dev_agent.reasoning.rules.design.reading import Reading, read
from flowise_dev_agent.reasoning.rules.design.steps import design_steps
from flowise_dev_agent.reasoning.rules.language.text import detect_language, normalised

_LOADERS = {"text": "plainText", "pdf": "pdfFile", "csv": "csvFile", "docx": "docxFile", "web": "cheerioWebScraper"}


def design_form(request: PlanRequest, form: DesignForm) -> Design:
    """The flow of a form, or a design that says which part of it this Flowise does not have."""
    language = detect_language(form.prompt or form.name)
    provider, model = chat_provider(form.model or ""), model_id(form.model or "")
    if form.model and provider is None:
        return declined(request, say("declined_unknown", language, name=form.model, near=""))
    tools: list[tuple[str, ...]] = []
    for name in form.tools:
        found = _tool(name, request.nodes)
        if not found:
            return declined(request, say("declined_tool", language, name=name))
        tools.append(found)
    abouts = tuple(source.about for source in form.sources if source.about)
    texts = [source.text for source in form.sources if source.kind == "text" and source.text]
    reading = Reading(
        text="",
        language=language,
        provider=provider,
        model=model,
        memory=_memory(form),
        no_memory=form.memory == "none" or form.kind == "task",
        tools=tuple(tools),
        chat=form.kind == "chat",
        knowledge=bool(form.sources),
        besides=bool(form.tools),
        topics=abouts if len(abouts) == 1 else (),
        inline_text="\n\n".join(texts) or None,
        urls=tuple(source.url for source in form.sources if source.kind == "web"),
        loaders=tuple(dict.fromkeys(_LOADERS[source.kind] for source in form.sources if source.kind != "web")),
        transform=form.kind == "task",
        structured=bool(form.fields),
        fields=tuple(Field(one.name, one.type, one.description or one.name) for one in form.fields),
        denied_words=tuple(form.refused_words),
        quantities=Quantities(
            temperature=form.temperature, memory_window=form.memory if isinstance(form.memory, int) else None
        ),
    )
    if form.kind == "steps":
        text = normalised("\n".join(form.steps))
        return design_steps(request, text, replace(read(text, request.nodes), provider=provider, model=model), language)
    return designed(request, form.as_text(), reading, form.prompt or "", language).model_copy(
        update={"flow_name": form.name}
    )


def _memory(form: DesignForm) -> str | None:
    if form.memory == "none" or form.kind == "task":
        return None
    return "bufferMemory" if form.memory == "all" else "bufferWindowMemory"


def _tool(name: str, store: NodeStore) -> tuple[str, ...]:
    """The node types that a name means: a type, a title, or words as in a requirement."""
    if schema := store.get(name):
        return (schema.name,)
    titled = next((item.name for item in store.schemas.values() if item.label.casefold() == name.casefold()), None)
    return (titled,) if titled else next(iter(read(normalised(f"an agent with {name}"), store).tools), ())
