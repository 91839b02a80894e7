"""Numbers of the knowledge: `python scripts/bench/knowledge.py`. Needs neither a server nor a database.

Times are medians; a search is timed over the whole catalogue with the index built, as in a running worker.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flowise_dev_agent.knowledge.drift import compare
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.reference import REFERENCE_FILE
from flowise_dev_agent.knowledge.reference_parser import parse_reference
from flowise_dev_agent.knowledge.search import NodeIndex
from flowise_dev_agent.knowledge.templates import TemplateStore

QUERIES = (
    "window memory",
    "web search",
    "pdf",
    "chatOpenAI",
    "customer support chatbot with GPT-4o and memory",
    "question answering over the PDF files of our handbook, with sources, in German, that remembers the conversation",
)
LONG = " ".join(QUERIES) * 100


def measure(name: str, work: Callable[[], Any], repeat: int = 50) -> float:
    """Print and return the median time of a call in milliseconds."""
    times: list[float] = []
    work()
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    median = statistics.median(times)
    print(f"{name:58} {median:9.4f} ms")
    return median


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
    page = Path(__file__).parents[2] / REFERENCE_FILE
    names = list(store.schemas)
    store.search("warm up")

    measure(f"load the snapshot ({len(store)} nodes)", NodeStore.from_snapshot, 20)
    measure("build the search index", lambda: NodeIndex(store.schemas.values()), 20)
    measure("read the reference page back", lambda: parse_reference(page.read_text(encoding="utf-8")), 10)
    measure("compare two catalogues", lambda: compare(store, NodeStore(store.schemas, "other")), 10)
    measure("look up all names, exact", lambda: [store.get(name) for name in names])
    measure("look up all names, other case", lambda: [store.get(name.upper()) for name in names])
    measure("names close to a misspelt one", lambda: store.suggest("chatOpenIA"))
    for query in QUERIES:
        measure(f"search: {query[:48]}", lambda text=query: store.search(text, 30))
    measure(
        "search, filtered by kind, category and anchor",
        lambda: store.search("openai", 30, kind="CHATFLOW", category="Embeddings", accepting=["Embeddings"]),
    )
    measure(f"search with a requirement of {len(LONG)} characters", lambda: store.search(LONG, 30))
    measure("find templates, all six queries", each(QUERIES, templates.find))


if __name__ == "__main__":
    main()
