"""Plans that concern several domains."""

import threading
from typing import Any

from tests.unit.agent.rig import Bench, plan
from tests.unit.agent.test_graph import credentials, ops


async def test_a_plan_for_a_domain_that_is_not_there_is_refused_with_a_finding() -> None:
    bench = Bench(ops(), credentials("1"))
    bench.reasoner.plans = [plan(domain_targets=["flowise", "servicenow"])]

    await bench.start()
    question = await bench.answer(action="approve")

    assert question["type"] == "patch_review"
    state = await bench.state()
    assert [(one.code, one.severity) for one in state.check.findings] == [("UNKNOWN_DOMAIN", "error")]
    assert "'servicenow', which is not installed" in state.check.findings[0].message
    assert not bench.flowise.flows


async def test_p86_what_fits_is_looked_up_beside_the_event_loop() -> None:
    """The first time it takes seconds of a busy machine, in which a worker on the loop would count as lost."""
    bench = Bench(ops(), credentials("1"))
    threads: list[int] = []

    def suggest(*_: Any) -> list[str]:
        threads.append(threading.get_ident())
        return []

    bench.reasoner.suggest_node_types = suggest  # type: ignore[method-assign]
    await bench.start()
    assert threads
    assert threading.get_ident() not in threads
