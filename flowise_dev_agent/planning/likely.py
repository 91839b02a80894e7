"""Node types that a requirement names, by vendor or by full title."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final, Self
from weakref import WeakKeyDictionary

from flowise_dev_agent.knowledge.model_ends import LIST_METHOD
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.vocabulary import words
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.planning.requests import PlanRequest

#: A word in the titles of more types than this is generic and names no type.
_COMMON: Final = 6
#: Vendor words that need not be named with another vendor of a type: "Azure" means its OpenAI.
_BEHIND: Final = frozenset(("aws", "google", "microsoft", "openai"))
#: Words of credentials that name Flowise's own things, and no vendor.
_OWN: Final = frozenset(("chatflow", "agentflow", "flowise"))
#: Most types of one vendor, and the largest score below its best type: some vendors have a dozen types.
_OF_VENDOR, _WORSE = 3, 0.5
#: What people say -> words of the types that they mean: families of models, and ways to call an address.
_MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    "gpt": ("openai",),
    "gemini": ("google", "generative"),
    **dict.fromkeys(("api", "http", "https"), ("request",)),
    **dict.fromkeys(("claude", "sonnet", "haiku", "opus"), ("anthropic",)),
}
#: Most types whose models are listed.
_WITH_MODELS: Final = 4
#: Types for this library rank behind equivalent types without it.
_ADAPTER: Final = "llamaindex"


@dataclass(frozen=True)
class _Named:
    """Words of a type: its vendor, those of its title that few types have and the others, name and title, synonyms."""

    vendor: frozenset[str]
    label: frozenset[str]
    rest: frozenset[str]
    title: frozenset[str]
    more: frozenset[str]

    @classmethod
    def of(cls, schema: NodeSchema, common: Set[str]) -> Self:
        title = frozenset(words(f"{schema.name} {schema.label}"))
        credentials = frozenset(words(" ".join(schema.credential_names))) - common - _OWN
        fields = " ".join(f"{entry['name']} {entry.get('label', '')}" for entry in schema.input_definitions)
        label = frozenset(words(schema.label))
        return cls(
            vendor=credentials & title,
            label=label - common,
            rest=label & common,
            title=title,
            more=frozenset(words(f"{schema.category} {fields}")) - title,
        )

    def is_said(self, said: frozenset[str]) -> bool:
        """True if the words name the type; one rare word of a longer title ("Prompt" of a retriever) does not."""
        return bool(self.label) and self.label <= said and (len(self.label) > 1 or self.rest <= said)

    def score(self, said: frozenset[str]) -> float:
        return len(self.title & said) + len(self.more & said) / 2 - (_ADAPTER in self.title - said)


#: A store lives as long as the types of its instance do not change.
_WORDS: WeakKeyDictionary[NodeStore, Mapping[str, _Named]] = WeakKeyDictionary()


def named_types(request: PlanRequest) -> list[NodeSchema]:
    """Node types that the person names, the best of each vendor first, ranked by matching words in title, category and
    fields.
    """
    store = request.nodes
    if store not in _WORDS:
        offered = [one for one in store.schemas.values() if _is_offered(one)]
        counted = Counter(word for one in offered for word in {*words(f"{one.name} {one.label}")})
        common = {word for word, count in counted.items() if count > _COMMON}
        _WORDS[store] = {one.name: _Named.of(one, common) for one in offered}
    answers = (answer for _, answer in request.clarifications)
    spoken = words(" ".join([request.requirement, *answers, *request.later, request.feedback or ""]))
    said = frozenset([*spoken, *(word for one in spoken for word in _MEANT.get(one, ()))])
    found: dict[str, list[tuple[float, str]]] = {}
    for name, type_ in _WORDS[store].items():
        vendor = min(type_.vendor & said, default="") if type_.vendor <= said | _BEHIND else ""
        if vendor or type_.is_said(said):
            found.setdefault(vendor or name, []).append((-type_.score(said), name))
    ranked = [
        (place, score, name)
        for same in found.values()
        for place, (score, name) in enumerate(sorted(same)[:_OF_VENDOR])
        if score <= min(same)[0] + _WORSE
    ]
    return [store.schemas[name] for _, _, name in sorted(ranked)]


def present_types(request: PlanRequest) -> list[NodeSchema]:
    """Node types in the flow, models and tools inside its steps included."""
    names = dict.fromkeys([*request.flow.existing.values(), *request.flow.components.values()])
    return [schema for name in names if (schema := request.nodes.get(name))]


def types_with_models(request: PlanRequest) -> list[str]:
    """The types that the person names or the flow has, and whose models the server lists."""
    types = dict.fromkeys(one.name for one in [*named_types(request), *present_types(request)] if _lists_models(one))
    return [*types][:_WITH_MODELS]


def _lists_models(schema: NodeSchema) -> bool:
    return any(entry.get("loadMethod") == LIST_METHOD for entry in schema.input_definitions)


def _is_offered(schema: NodeSchema) -> bool:
    return not schema.deprecated and KIND_OF_CATEGORY.get(schema.category) != "MULTIAGENT"
