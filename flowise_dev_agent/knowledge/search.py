"""Ranked full text search over small catalogues: SQLite's FTS5, in memory, fed with the words of `vocabulary`."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence

from flowise_dev_agent.knowledge.vocabulary import SYNONYM_WEIGHT, expand, words
from flowise_dev_agent.patch.schema import KIND_OF_CATEGORY, NodeSchema
from flowise_dev_agent.patch.suggest import fold

_TAG = re.compile(r"<[^>]+>")

#: Words of one query. BM25 adds up over words, so a long text is asked about in parts.
_QUERY_WORDS = 40
#: What of a long text is searched for: its beginning, and of that so many words, those of the catalogue first.
_TEXT_CHARS, _TEXT_WORDS = 2_000, 40
_NAME_WEIGHT, _CATEGORY_WEIGHT, _DESCRIPTION_WEIGHT = 10.0, 3.0, 1.0
_NAMED = 100.0
_DEPRECATED_FACTOR = 0.4


class TextIndex:
    """Documents of several columns, ranked by BM25 with a weight per column. Built once; safe to search in threads."""

    def __init__(self, weights: Sequence[float], documents: Iterable[Sequence[str]]) -> None:
        columns = ", ".join(f"c{number}" for number in range(len(weights)))
        marks = ", ".join("?" for _ in weights)
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute(f"CREATE VIRTUAL TABLE documents USING fts5({columns}, tokenize = 'porter ascii')")
        rows = [[words(text) for text in document] for document in documents]
        self._vocabulary = frozenset(word for row in rows for column in row for word in column)
        self._database.executemany(
            f"INSERT INTO documents VALUES ({marks})",  # noqa: S608 - nothing but column numbers
            ([" ".join(column) for column in row] for row in rows),
        )
        rank = ", ".join(str(weight) for weight in weights)
        self._query = f"SELECT rowid - 1, -bm25(documents, {rank}) FROM documents WHERE documents MATCH ?"  # noqa: S608

    def scores(self, text: str) -> dict[int, float]:
        """Document number -> relevance (above zero) of those that share a word with the text or with what it means."""
        said = list(dict.fromkeys(words(text[:_TEXT_CHARS])))
        if len(said) > _TEXT_WORDS:
            said = sorted(said, key=lambda word: word not in self._vocabulary)[:_TEXT_WORDS]
        meant = sorted(expand(set(said)))
        found: dict[int, float] = {}
        for some, weight in ((said, 1.0), (meant, SYNONYM_WEIGHT)):
            for start in range(0, len(some), _QUERY_WORDS):
                query = " OR ".join(f'"{word}"' for word in some[start : start + _QUERY_WORDS])
                for number, score in self._database.execute(self._query, (query,)):
                    found[number] = found.get(number, 0.0) + weight * score
        return found


class NodeIndex:
    """Finds node types by what people say."""

    def __init__(self, schemas: Iterable[NodeSchema]) -> None:
        self._schemas = list(schemas)
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
        """Best first, at most ``limit``, of those that pass the filters; an empty text finds all of them, by name."""
        fits = _filter(kind, category, accepting)
        if not text.strip():
            return sorted((one for one in self._schemas if fits(one)), key=lambda one: one.name)[:limit]
        scores = self._index.scores(text)
        text = text[:_TEXT_CHARS]
        folded = fold(text)
        for piece in {fold(piece) for piece in set(text.split())} | {folded}:
            for number in self._by_name.get(piece, ()):
                scores[number] = scores.get(number, 0.0) + _NAMED
        for number in self._by_label.get(folded, ()):
            scores[number] = scores.get(number, 0.0) + _NAMED
        ranked = [
            (self._schemas[number], score * (_DEPRECATED_FACTOR if self._schemas[number].deprecated else 1.0))
            for number, score in scores.items()
            if fits(self._schemas[number])
        ]
        ranked.sort(key=lambda pair: (-pair[1], pair[0].name))
        return [schema for schema, _ in ranked[:limit]]


def runs_in(schema: NodeSchema, kind: str) -> bool:
    """True when nodes of this type work in flows of type CHATFLOW, AGENTFLOW or MULTIAGENT."""
    return KIND_OF_CATEGORY.get(schema.category, "CHATFLOW") == kind


def gives(schema: NodeSchema, anchor_types: Iterable[str]) -> bool:
    """True when an output of the type fits an anchor that takes these classes."""
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
