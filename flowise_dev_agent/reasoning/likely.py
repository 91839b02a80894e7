"""The node types that a wish names: by the words of a vendor, or by all words of a title."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self
from weakref import WeakKeyDictionary

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.vocabulary import words
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.reasoning.contracts import PlanRequest

#: Words of credential types that are no vendor, or that people use for other things.
_ORDINARY: Final = frozenset(
    words(
        "agentflow ai alpha api app auth basic bearer brave browser cache calendar chatflow cloud comet composio crawl "
        "custom db dc doc drive exa face fire generative http hugging id key local mem memory nim open password router "
        "search server sheet single spider store td team together token unstructured url vector voyage"
    )
)
#: Words of titles that say what kind of thing it is.
_KINDS: Final = frozenset(
    words(
        "agent agentflow ai api chain chat chatflow document file flow json loader mcp memory model search server "
        "store text tool vector word"
    )
)
#: Vendors of which a type may be another's offer: whoever says Azure means its OpenAI.
_BEHIND: Final = frozenset(("aws", "google", "microsoft", "openai"))
#: Types of one vendor: some have a dozen. Those that fit worse than the best by more than this are left out.
_OF_VENDOR, _WORSE = 3, 0.5
#: Types for another library come behind those that do the same without it.
_ADAPTER: Final = "llamaindex"


@dataclass(frozen=True)
class _Named:
    """The words of a type: of its vendor, of name and title, and of what else people say of it."""

    vendor: frozenset[str]
    label: frozenset[str]
    title: frozenset[str]
    more: frozenset[str]

    @classmethod
    def of(cls, schema: NodeSchema) -> Self:
        title = frozenset(words(f"{schema.name} {schema.label}"))
        credentials = frozenset(words(" ".join(schema.credential_names))) - _ORDINARY
        fields = " ".join(f"{entry['name']} {entry.get('label', '')}" for entry in schema.input_definitions)
        return cls(
            vendor=credentials & title,
            label=frozenset(words(schema.label)) - _KINDS,
            title=title,
            more=frozenset(words(f"{schema.category} {fields}")) - title,
        )

    def score(self, said: frozenset[str]) -> float:
        return len(self.title & said) + len(self.more & said) / 2 - (_ADAPTER in self.title - said)


#: A store lives as long as the types of its instance do not change.
_WORDS: WeakKeyDictionary[NodeStore, Mapping[str, _Named]] = WeakKeyDictionary()


def named_types(request: PlanRequest) -> list[NodeSchema]:
    """Those that the person's words name: the best one of each vendor first. The more words of its title, category and
    fields are named, the better it fits."""
    store = request.nodes
    if store not in _WORDS:
        _WORDS[store] = {one.name: _Named.of(one) for one in store.schemas.values() if _is_offered(one)}
    answers = (answer for _, answer in request.clarifications)
    said = frozenset(words(" ".join([request.requirement, *answers, *request.later, request.feedback or ""])))
    found: dict[str, list[tuple[float, str]]] = {}
    for name, type_ in _WORDS[store].items():
        vendor = min(type_.vendor & said, default="") if type_.vendor <= said | _BEHIND else ""
        if vendor or (type_.label and type_.label <= said):
            found.setdefault(vendor or name, []).append((-type_.score(said), name))
    ranked = [
        (place, score, name)
        for same in found.values()
        for place, (score, name) in enumerate(sorted(same)[:_OF_VENDOR])
        if score <= min(same)[0] + _WORSE
    ]
    return [store.schemas[name] for _, _, name in sorted(ranked)]


def _is_offered(schema: NodeSchema) -> bool:
    return not schema.deprecated and KIND_OF_CATEGORY.get(schema.category) != "MULTIAGENT"
