"""A new flow and a change through each door to a model, in the real service.

`python scripts/bench/doors.py` prints the same as a table.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.chaos.fake_flowise import FakeFlowise
from tests.doors.peers import DOORS
from tests.doors.sessions import FLOWISE_KEY, figures, own_variables, through
from tests.doors.test_engine import LOOSE


@pytest.fixture(scope="module")
def flowise() -> Iterator[FakeFlowise]:
    with FakeFlowise(api_key=FLOWISE_KEY, latency=0) as server:
        yield server


#: Doors without a way to hold the model to a schema, for what the model layer can ask them.
LOSSES = {name: [f"{phase} without a schema" for phase in ("classify", "plan", "patch", "judge")] for name in LOOSE}
#: Doors that refuse something which a profile of the model layer does not know.
TAUGHT = {"openai", "azure", "groq", "vllm"}
#: Doors of which each is unlike the others; `test_engine.py` goes through all.
QUICK = {"anthropic", "deepseek", "gemini", "groq", "ollama", "openai", "vllm"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a developer's variables out, and put them back with what a door adds."""
    for variable in own_variables():
        monkeypatch.delenv(variable)
    for door in DOORS.values():
        for variable in door.credentials:
            monkeypatch.setenv(variable, "")
            monkeypatch.delenv(variable)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.nightly) for name in DOORS]
)
async def test_sessions_go_through_and_each_kind_of_request_is_refused_once_at_most(
    name: str, database_dsn: str, flowise: FakeFlowise
) -> None:
    passage = await through(DOORS[name], database_dsn, flowise)
    found = figures(passage)
    assert found.broken == []
    assert found.lost == LOSSES.get(name, [])
    assert bool(passage.told) is bool(found.lost)
    refused = Counter(exchange.kind for exchange in passage.first if exchange.refusal)
    assert all(count == 1 for count in refused.values()), found.rules
    assert bool(refused) is (name in TAUGHT)


async def test_what_a_refusal_taught_outlives_the_process(database_dsn: str, flowise: FakeFlowise) -> None:
    passage = await through(DOORS["openai"], database_dsn, flowise, restart=True)
    assert any(exchange.refusal for exchange in passage.first)
    assert not any(exchange.refusal for exchange in passage.restarted)
