"""Ranked full text search over small catalogues: SQLite's FTS5, in memory, with the words of `vocabulary`."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple, Self

from flowise_dev_agent.knowledge.vocabulary import SYNONYM_WEIGHT, expand, known_forms, tokens, words
from flowise_dev_agent.patch import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.patch.model.suggest import fold

_TAG = re.compile(r"<[^>]+>")

_BEGINNING_CHARS = 1_000
#: Maximum number of words of a text, and of synonyms, in a search: the rarest and most significant ones.
_MOST_WORDS = 40
_NAME_WEIGHT, _CATEGORY_WEIGHT, _DESCRIPTION_WEIGHT = 10.0, 3.0, 1.0
_NAMED = 100.0
_DEPRECATED_FACTOR = 0.4


class Query(NamedTuple):
    """A text to search for.

    Its beginning is split closely. From the rest only words of the catalogue count, as written there or with a plural
    s: so a text of 20,000 characters takes a millisecond or two.
    """

    beginning: str
    rest: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Self:
        """Make a query of any text."""
        return cls(text[:_BEGINNING_CHARS], tokens(text[_BEGINNING_CHARS:]))


class TextIndex:
    """Documents of several columns, ranked by BM25 with a weight per column. Built once; thread-safe for searches."""

    def __init__(self, weights: Sequence[float], documents: Iterable[Sequence[str]]) -> None:
        columns = ", ".join(f"c{number}" for number in range(len(weights)))
        marks = ", ".join("?" for _ in weights)
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(f"CREATE VIRTUAL TABLE documents USING fts5({columns}, tokenize = 'porter ascii')")
        rows = [[words(text) for text in document] for document in documents]
        self._documents_with = Counter(word for row in rows for word in {word for column in row for word in column})
        self._known = known_forms(self._documents_with)
        self._database.executemany(
            f"INSERT INTO documents VALUES ({marks})",  # noqa: S608 - nothing but column numbers
            ([" ".join(column) for column in row] for row in rows),
        )
        rank = ", ".join(str(weight) for weight in weights)
        self._query = f"SELECT rowid - 1, -bm25(documents, {rank}) FROM documents WHERE documents MATCH ?"  # noqa: S608

    def scores(self, query: Query) -> dict[int, float]:
        """Document number -> relevance (above zero) of the documents that share a word or synonym with the text."""
        said = {*words(query.beginning), *(self._known[token] for token in self._known.keys() & query.rest)}
        found: dict[int, float] = {}
        for terms, weight in ((said, 1.0), (expand(said), SYNONYM_WEIGHT)):
            match = " OR ".join(f'"{word}"' for word in self._rarest(terms))
            for number, score in self._database.execute(self._query, (match,)) if match else ():
                found[number] = found.get(number, 0.0) + weight * score
        return found

    def _rarest(self, terms: set[str]) -> list[str]:
        """The rarest words. Words without a document come last: at most their stem has one."""
        counts = self._documents_with
        return sorted(terms, key=lambda term: (counts[term] == 0, counts[term], term))[:_MOST_WORDS]


class NodeIndex:
    """Search of node types in everyday words."""

    def __init__(self, schemas: Iterable[NodeSchema]) -> None:
        self._schemas = sorted(schemas, key=lambda schema: schema.name)
        self._factors = [_DEPRECATED_FACTOR if schema.deprecated else 1.0 for schema in self._schemas]
        self._index = TextIndex(
            (_NAME_WEIGHT, _CATEGORY_WEIGHT, _DESCRIPTION_WEIGHT),
            (
                (
                    f"{schema.name} {schema.label}",
                    f"{schema.category} {schema.raw.get('type') or ''}",
                    _TAG.sub(" ", schema.description),
                )
                for schema in self._schemas
            ),
        )
        self._by_name: dict[str, list[int]] = {}
        self._by_label: dict[str, list[int]] = {}
        for number, schema in enumerate(self._schemas):
            self._by_name.setdefault(fold(schema.name), []).append(number)
            self._by_label.setdefault(fold(schema.label), []).append(number)

    def search(
        self,
        text: str,
        limit: int,
        *,
        kind: str | None = None,
        category: str | None = None,
        accepting: Iterable[str] | None = None,
    ) -> list[NodeSchema]:
        """The best types that pass the filters, at most ``limit``; for an empty text all of them, by name."""
        fits = _filter(kind, category, accepting)
        if not text.strip():
            return [schema for schema in self._schemas if fits(schema)][:limit]
        query = Query.of(text)
        scores = self._index.scores(query)
        folded = fold(query.beginning)
        pieces = {folded, *query.rest, *(fold(piece) for piece in set(query.beginning.split()))}
        for piece in self._by_name.keys() & pieces:
            for number in self._by_name[piece]:
                scores[number] = scores.get(number, 0.0) + _NAMED
        for number in self._by_label.get(folded, ()):
            scores[number] = scores.get(number, 0.0) + _NAMED
        ranked = sorted((-score * self._factors[number], number) for number, score in scores.items())
        fitting = (schema for _, number in ranked if fits(schema := self._schemas[number]))
        return list(islice(fitting, limit))


def runs_in(schema: NodeSchema, kind: str) -> bool:
    """True if nodes of this type work in flows of type CHATFLOW, AGENTFLOW or MULTIAGENT."""
    return KIND_OF_CATEGORY.get(schema.category, "CHATFLOW") == kind


def gives(schema: NodeSchema, anchor_types: Iterable[str]) -> bool:
    """True if an output of the type fits an anchor that takes these classes."""
    wanted = set(anchor_types)
    return any(wanted & set(output.base_classes) for output in schema.outputs)


def _filter(kind: str | None, category: str | None, accepting: Iterable[str] | None) -> Callable[[NodeSchema], bool]:
    wanted = None if accepting is None else frozenset(accepting)
    folded = None if category is None else fold(category)

    def fits(schema: NodeSchema) -> bool:
        return (
            (kind is None or runs_in(schema, kind))
            and (folded is None or fold(schema.category) == folded)
            and (wanted is None or gives(schema, wanted))
        )

    return fits
