"""Measures knowledge look-ups: `python scripts/bench/knowledge.py`. Needs neither a server nor a database.

In CPU time (see `clock.py`); a search is timed over the whole catalogue with the index built, as in a running
worker.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.knowledge.drift import compare
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.search import NodeIndex
from flowise_dev_agent.knowledge.templates import TemplateStore
from scripts.bench.clock import heading, line, measure

QUERIES = (
    "window memory",
    "web search",
    "pdf",
    "chatOpenAI",
    "customer support chatbot with GPT-4o and memory",
    "question answering over the PDF files of our handbook, with sources, in German, that remembers the conversation",
)
LONG = " ".join(QUERIES) * 100


def show(name: str, work: Callable[[], Any]) -> None:
    """Time a call and print its line."""
    print(line(name, measure(work)))


def each(queries: Sequence[str], work: Callable[[str], Any]) -> Callable[[], None]:
    """One call that makes all."""

    def run() -> None:
        for query in queries:
            work(query)

    return run


def main() -> None:
    """Run all and print a line each."""
    store = NodeStore.from_snapshot()
    templates = TemplateStore.from_snapshot()
    names = list(store.schemas)
    store.search("warm up")

    print(heading())
    show(f"load the snapshot ({len(store)} nodes)", NodeStore.from_snapshot)
    show("build the search index", lambda: NodeIndex(store.schemas.values()))
    show("compare two catalogues", lambda: compare(store, NodeStore(store.schemas, "other")))
    show("look up all names, exact", lambda: [store.get(name) for name in names])
    show("look up all names, other case", lambda: [store.get(name.upper()) for name in names])
    show("names close to a misspelt one", lambda: store.suggest("chatOpenIA"))
    for query in QUERIES:
        show(f"search: {query[:48]}", lambda text=query: store.search(text, 30))
    show(
        "search, filtered by kind, category and anchor",
        lambda: store.search("openai", 30, kind="CHATFLOW", category="Embeddings", accepting=["Embeddings"]),
    )
    show(f"search with a requirement of {len(LONG)} characters", lambda: store.search(LONG, 30))
    show("find templates, all six queries", each(QUERIES, templates.find))
    show("find flows to show a planner", lambda: templates.find_flows(QUERIES[4], store.schemas))


if __name__ == "__main__":
    main()
