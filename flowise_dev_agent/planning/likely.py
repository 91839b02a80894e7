"""Node types that a requirement names, by vendor or by full title."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final, Self
from weakref import WeakKeyDictionary

from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.vocabulary import words
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.planning.requests import PlanRequest

#: A word in the titles of more types than this is generic and names no type.
_COMMON: Final = 6
#: Vendor words that need not be named with another vendor of a type: "Azure" means its OpenAI.
_BEHIND: Final = frozenset(("aws", "google", "microsoft", "openai"))
#: Most types of one vendor, and the largest score below its best type: some vendors have a dozen types.
_OF_VENDOR, _WORSE = 3, 0.5
#: Types for this library rank behind equivalent types without it.
_ADAPTER: Final = "llamaindex"


@dataclass(frozen=True)
class _Named:
    """Words of a type: its vendor, its name and title, and synonyms."""

    vendor: frozenset[str]
    label: frozenset[str]
    title: frozenset[str]
    more: frozenset[str]

    @classmethod
    def of(cls, schema: NodeSchema, common: Set[str]) -> Self:
        title = frozenset(words(f"{schema.name} {schema.label}"))
        credentials = frozenset(words(" ".join(schema.credential_names))) - common
        fields = " ".join(f"{entry['name']} {entry.get('label', '')}" for entry in schema.input_definitions)
        return cls(
            vendor=credentials & title,
            label=frozenset(words(schema.label)) - common,
            title=title,
            more=frozenset(words(f"{schema.category} {fields}")) - title,
        )

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
