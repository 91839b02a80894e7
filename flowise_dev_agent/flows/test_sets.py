"""Test sets of flows: what people marked, accepted and gave, as the tests of every later change."""

from collections.abc import Iterable
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from flowise_dev_agent.errors import FlowTestNotFoundError, SessionConflictError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.persistence import Sessions, TestSets
from flowise_dev_agent.schemas.base import read
from flowise_dev_agent.schemas.flow_exports import refused
from flowise_dev_agent.schemas.flow_tests import MOST_IN_SET, PutTestSet, TestMark, TestSetView
from flowise_dev_agent.schemas.plan import Expectation, TestCase, numbered
from flowise_dev_agent.schemas.session import ApprovedPlan, ResultView
from flowise_dev_agent.schemas.verdict import Mark, Trial
from flowise_dev_agent.testing.test_files import Format, read_tests, write_tests
from flowise_dev_agent.texts import text

_NUMBERED: Final[TypeAdapter[list[dict[str, Any]]]] = TypeAdapter(Annotated[list[dict[str, Any]], numbered("t")])
#: A longer answer is not held against a later one.
_LONGEST_ANSWER: Final = 300


class TestSetService:
    """Test sets of flows, for clients and sessions. Raises InvalidInputError for an unknown instance."""

    __test__ = False  # not a pytest class

    def __init__(self, sets: TestSets, sessions: Sessions, instances: Instances) -> None:
        self._sets = sets
        self._sessions = sessions
        self._instances = instances

    async def view(self, chatflow_id: str, instance: str | None, form: Format) -> TestSetView:
        """The set of a flow, as data and as a file."""
        tests = await set_of_flow(self._sets, self._instances.resolve(instance), chatflow_id)
        return TestSetView(tests=tests, text=write_tests(tests, form) if form != "json" else None)

    async def put(self, chatflow_id: str, body: PutTestSet, instance: str | None) -> TestSetView:
        """Replace the set of a flow. Raises InvalidInputError."""
        if body.text is not None:
            try:
                body = PutTestSet(tests=read_tests(body.text, body.format))
            except ValidationError as error:
                raise refused(error) from None
        tests: list[TestCase] = [*(body.tests or ())]
        await self._sets.put(self._instances.resolve(instance), chatflow_id, _rows(tests))
        return TestSetView(tests=tests, text=None)

    async def mark(self, session_id: UUID, number: int, mark: TestMark, by: str) -> Trial:
        """Store a person's judgement of a test of a session, and take the test into the flow's set.

        Raises SessionNotFoundError, FlowTestNotFoundError, and SessionConflictError while the session is at work.
        """
        row = await self._sessions.get(session_id)
        result = read(ResultView, row.result) if row.result else ResultView()
        if not 1 <= number <= len(result.tests):
            raise FlowTestNotFoundError(text("error.no_such_test", number=number, total=len(result.tests)))
        plan = read(ApprovedPlan, row.plan).contract if row.plan else None
        trial = result.tests[number - 1].model_copy(update={"mark": Mark(good=mark.good, by=by)})
        tests = [trial if position == number else one for position, one in enumerate(result.tests, start=1)]
        judged = result.model_copy(update={"tests": tests})
        if result.verdict and plan:
            tested = {one.id: one.tests for one in plan.criteria}
            judged = judged.model_copy(update={"verdict": result.verdict.with_marks(tests, tested)})
        stored = judged.model_dump(mode="json")
        if not await self._sets.mark(session_id, stored, row.version, number=number, good=mark.good):
            raise SessionConflictError(text("error.read_session_again"))
        planned = {one.id: one for one in plan.tests} if plan else {}
        case = planned.get(trial.test or "") or TestCase(id="t1", turns=trial.question.splitlines()[:4] or ["?"])
        case = _corrected(case, trial, mark)
        if row.chatflow_id is not None and case is not None:
            known = await set_of_flow(self._sets, row.instance_id, row.chatflow_id)
            others = [one for one in known if _asked(one) != _asked(case)]
            # A person's own judgement comes first, and stays when there are too many.
            await self._sets.put(row.instance_id, row.chatflow_id, _rows([case, *others][:MOST_IN_SET]))
        return trial


async def set_of_flow(sets: TestSets, instance_id: str, chatflow_id: str) -> list[TestCase]:
    """The set of a flow, with the tests of sessions that were accepted since it was stored. What these agreed to expect
    is expected.
    """
    row = await sets.get(instance_id, chatflow_id)
    tests = [TestCase.model_validate(test) for test in row.tests] if row else []
    accepted = await sets.accepted(instance_id, chatflow_id, row.updated_at if row else None)
    new = [(TestCase.model_validate(test), one.created_at) for one in accepted for test in one.tests]
    if not new:
        return tests
    # A session that began after the set was stored knows all of it, and agreed on what it changed.
    agreed = [test for test, began in new if row and began > row.updated_at]
    kept = {_asked(one): one for one in tests if not _is_decided_no_more(one, agreed)}
    kept |= {_asked(one): one for one in agreed}
    added = {key: one for one, _ in new if (key := _asked(one)) not in kept}
    rows = _rows([*kept.values(), *added.values()][:MOST_IN_SET])
    await sets.put(instance_id, chatflow_id, rows, until=accepted[-1].updated_at)
    return [TestCase.model_validate(test) for test in rows]


def _rows(tests: Iterable[TestCase]) -> list[dict[str, Any]]:
    return _NUMBERED.validate_python([test.model_dump(mode="json", exclude_defaults=True) for test in tests])


def _asked(case: TestCase) -> str:
    """Words by which two tests are the same: what is said to the flow."""
    return case.model_dump_json(include={"turns", "payload", "human", "human_feedback", "answers"})


def _is_decided_no_more(case: TestCase, accepted: Iterable[TestCase]) -> bool:
    """True for a test with decisions of a person that a change has taken out of it."""
    same = [one.human for one in accepted if (one.turns, one.payload) == (case.turns, case.payload)]
    return bool(case.human and same) and not any(same)


def _corrected(case: TestCase, trial: Trial, mark: TestMark) -> TestCase | None:
    """The case with what the person expects; None if nothing is known that could be checked again."""
    excludes = mark.excludes
    if not mark.good and not mark.contains and not excludes:
        if not 0 < len(trial.answer) <= _LONGEST_ANSWER:
            return None
        excludes = [trial.answer]
    expect = Expectation() if not mark.good else case.expect
    return case.model_copy(
        update={
            "expect": expect.model_copy(
                update={
                    "contains": list(dict.fromkeys([*expect.contains, *mark.contains])),
                    "excludes": list(dict.fromkeys([*expect.excludes, *excludes])),
                }
            )
        }
    )
