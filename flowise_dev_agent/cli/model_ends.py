"""`flows ending`: flows on models whose end is announced, and how another model does on their tests."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta

from flowise_dev_agent.cli.console import show_table, warn
from flowise_dev_agent.cli.files import valid
from flowise_dev_agent.cli.flow_tests import held, with_model
from flowise_dev_agent.cli.rehearse import flows_of, tests_of
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.patch.validate.models import MODEL_END_CODES
from flowise_dev_agent.schemas.flow_tests import FlowValidation, TestFlowText, ValidateFlow


@dataclass
class EndingModel:
    """A model of a flow that ends, or has ended, and what takes its place."""

    id: str
    name: str
    model: str
    day: str
    #: The given model, else one that the server offers; '' if none is known.
    replacement: str
    #: Result of the flow's tests with it; None without tests.
    passed: bool | None = None


async def list_ending(
    client: AgentClient,
    *,
    days: int,
    tests: bool,
    model: str | None,
    instance: str | None,
    as_json: bool,
) -> bool:
    """Print the flows whose models end within so many days; True if there are none."""
    last = datetime.now(UTC).date() + timedelta(days=days)
    found: list[EndingModel] = []
    async for id_, name, kind in flows_of(client, instance):
        try:
            text = (await client.export_flow(id_, instance=instance)).flow_data
            body = valid(ValidateFlow, flow_data=text, kind=kind)
            checked = await client.validate_flow(body, instance=instance)
        except AgentError as error:
            warn(f"{name} ({id_}): {error.message}")
            continue
        for one in _ending(id_, name, checked.validation, last):
            one.replacement = model or one.replacement
            given = await tests_of(client, id_, instance) if tests and one.replacement else []
            if given:
                other = with_model(text, one.replacement)
                view = await held(client, valid(TestFlowText, tests=given, flow_data=other, kind=kind), None, instance)
                one.passed = view.passed
            found.append(one)
    words = {None: "", True: "passed", False: "failed"}
    rows = (
        (one.day, one.model, one.replacement, words[one.passed], one.id, one.name)
        for one in sorted(found, key=lambda one: one.day)
    )
    show_table(
        {"flows": [asdict(one) for one in found]},
        as_json,
        ("Ends", "Model", "Replacement", "Tests", "Flow", "Name"),
        rows,
        f"{len({one.id for one in found})} flows are on models that end by {last}.",
        whole=("Flow",),
    )
    return not found


def _ending(id_: str, name: str, said: FlowValidation, last: date) -> Iterator[EndingModel]:
    seen = set[str]()
    for finding in said.warnings:
        model, day, replacement = (str(finding.params.get(key) or "") for key in ("model", "day", "replacement"))
        if finding.code in MODEL_END_CODES and day <= last.isoformat() and model not in seen:
            seen.add(model)
            yield EndingModel(id_, name, model, day, replacement)
