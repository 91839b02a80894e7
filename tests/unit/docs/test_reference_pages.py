"""The pages in `docs/` say what the code says: routes, error codes, metrics, and links that lead somewhere."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

from flowise_dev_agent import errors
from flowise_dev_agent.api import problems
from flowise_dev_agent.api.app import create_app
from flowise_dev_agent.mcp import server
from flowise_dev_agent.observability import metrics
from flowise_dev_agent.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *DOCS.rglob("*.md"),
        *(ROOT / "tests").glob("*.md"),
    ]
)

#: A minute of an outage of the database, and what is told then.
_OUTAGE = """
rule_files: [alerts.yml]
evaluation_interval: 30s
tests:
  - interval: 30s
    input_series:
      - {series: 'fda_database_up{instance="a"}', values: '1 1 0 0 0 0'}
      - {series: 'fda_workers{instance="a"}', values: '2 2 2 2 2 2'}
    alert_rule_test:
      - {eval_time: 30s, alertname: DatabaseDown}
      - {eval_time: 2m30s, alertname: NoWorker}
      - eval_time: 2m30s
        alertname: DatabaseDown
        exp_alerts:
          - exp_labels: {severity: page}
            exp_annotations:
              summary: The database of the agent does not answer
              description: The API answers 503. Sessions go on by themselves when it is back.
"""
#: Ends a run silently; no person ever sees it.
INTERNAL_CODES = {errors.LeaseLostError.code}
#: Made where the error of a library is put into words.
OTHER_CODES = {"invalid_request", "step_timeout", "session_quarantined", "worker_lost"}


def _shape(route: str) -> str:
    """A route with the names of its parameters left out."""
    return re.sub(r"\{[a-z_]+\}", "{}", route)


def _served_routes() -> set[str]:
    document = create_app(Settings()).openapi()
    served = {_shape(f"{method.upper()} {path}") for path, item in document["paths"].items() for method in item}
    return served | {"POST /mcp"}


def _classes(root: type[errors.AgentError]) -> Iterator[type[errors.AgentError]]:
    yield root
    for child in root.__subclasses__():
        yield from _classes(child)


def test_the_api_page_lists_exactly_the_routes_that_are_served() -> None:
    listed = re.findall(r"^\| `([A-Z]+ /[^`]+)` \|", (DOCS / "api.md").read_text(), flags=re.MULTILINE)
    assert sorted(_shape(route) for route in listed) == sorted(_served_routes())


def test_the_api_page_names_exactly_the_error_codes_that_clients_can_meet() -> None:
    text = (DOCS / "api.md").read_text().partition("## Errors")[2].partition("| status | codes |")[2]
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", text)) - {"error", "hint"}
    classes = [cls for cls in _classes(errors.AgentError) if cls.__module__ == errors.__name__]
    own = {cls.code for cls in classes} - INTERNAL_CODES
    of_http = {code for code, _ in problems.HTTP_PROBLEMS.values()}
    assert named == own | of_http | OTHER_CODES


def test_the_operations_page_names_exactly_the_metrics_that_exist() -> None:
    sources = [ROOT / "flowise_dev_agent" / name for name in ("observability/metrics.py", "ops/health.py")]
    code = "".join(path.read_text() for path in sources)
    counters = set(re.findall(r'Counter\(\s*"(fda_[a-z_]+)"', code))
    exist = {f"{name}_total" if name in counters else name for name in re.findall(r'"(fda_[a-z_]+)"', code)}
    assert set(re.findall(r"`(fda_[a-z_]+)`", (DOCS / "operations.md").read_text())) == exist


def queries() -> list[str]:
    """The queries of the alert rules and of the dashboard."""
    rules = yaml.safe_load((DOCS / "operations" / "alerts.yml").read_text())
    panels = json.loads((DOCS / "operations" / "dashboard.json").read_text())["panels"]
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    return alerts + [target["expr"] for panel in panels for target in panel["targets"]]


@pytest.fixture(scope="module")
def labels_of() -> dict[str, set[str]]:
    """The labels of each sample that a process gives to Prometheus."""
    measured = (ROOT / "flowise_dev_agent/ops/health.py").read_text()
    found = {
        name: {*re.findall(r"\w+", labels)}
        for name, labels in re.findall(r'gauge\("(fda_\w+)"[^\[\n]*(?:\[(.*?)\])?', measured)
    }
    for metric in metrics.REGISTRY.collect():
        # Families without a sample yet have their name only.
        found |= {sample.name: {*sample.labels} for sample in metric.samples if sample.name.startswith("process_")}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            counts = ("_count", "_sum", "_bucket") if isinstance(metric, Histogram) else ()
            ends = ("_total",) if isinstance(metric, Counter) else counts or ("",)
            found |= {metric._name + end: {*metric._labelnames, "le"} for end in ends}
    return found


@pytest.mark.parametrize("query", queries())
def test_alerts_and_dashboard_ask_for_metrics_and_labels_that_exist(query: str, labels_of: dict[str, set[str]]) -> None:
    asked = re.findall(r"\b((?:fda|process)_\w+)(?:\{([^}]*)\})?", query)
    assert asked
    assert {name for name, _ in asked} <= {*labels_of}
    labels = {*re.findall(r"(\w+)(?:=~|!~|!=|=)", " ".join(filters for _, filters in asked))}
    labels |= {*re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", query)))}
    assert labels <= set[str]().union(*(labels_of[name] for name, _ in asked))


@pytest.mark.nightly
def test_prometheus_takes_each_query_and_tells_a_database_that_is_away(tmp_path: Path) -> None:
    """`PROMTOOL` names the program, which Debian has in the package `prometheus`."""
    program = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    asked = [query.replace("$__rate_interval", "5m") for query in queries()]
    recorded = [{"record": f"q{number}", "expr": query} for number, query in enumerate(asked)]
    (tmp_path / "queries.yml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}))
    (tmp_path / "alerts.yml").write_bytes((DOCS / "operations" / "alerts.yml").read_bytes())
    (tmp_path / "test.yml").write_text(_OUTAGE)
    for command in (["check", "rules", "queries.yml", "alerts.yml"], ["test", "rules", "test.yml"]):
        done = subprocess.run([program, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_mcp_page_names_exactly_the_tools_of_the_server() -> None:
    rows = re.findall(r"^\| (`.+?`) \|", (DOCS / "mcp.md").read_text(), flags=re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(function.__name__ for function, _, _ in server._TOOLS)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in _anchors(path)):
            broken.append(target)
    assert broken == []


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
