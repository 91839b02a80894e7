"""The plan of a session as the form that would make it."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from flowise_dev_agent.contracts.designs import DesignForm, FormField, FormSource, form_of
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.reasoning.contracts import Intent, PlanContract, PlanRequest
from flowise_dev_agent.reasoning.rules.reasoner import DeterministicReasoner


def planned(form: DesignForm, nodes: NodeStore) -> PlanContract:
    intent = Intent(operation="create", ambiguity=0, title=form.name)
    request = PlanRequest(requirement=form.as_text(), intent=intent, nodes=nodes, design=form)
    return asyncio.run(DeterministicReasoner().plan(request)).value


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "You sell bread.", "model": "gpt-4o", "temperature": 0.2, "memory": 5},
        {"prompt": "You help.", "tools": ["calculator"], "model": "gpt-4o"},
        {"sources": [{"kind": "text", "text": "x"}, {"kind": "web", "url": "https://a.example"}], "model": "gpt-4o"},
        {"kind": "task", "prompt": "Read it.", "fields": [{"name": "total", "type": "number"}], "model": "gpt-4o"},
        {"refused_words": ["bet", "casino"], "model": "gpt-4o"},
    ],
)
def test_a_form_comes_back_from_its_plan(fields: dict[str, Any], catalogue: NodeStore) -> None:
    form = DesignForm(name="Desk", **fields)
    found = form_of(planned(form, catalogue), "")
    assert found is not None
    named = {"fields", "memory"} if form.kind == "task" else set[str]()
    assert found.model_dump(exclude=named) == form.model_dump(exclude=named)
    assert [(one.name, one.type) for one in found.fields] == [(one.name, one.type) for one in form.fields]


@pytest.mark.parametrize("node", ["documentStore", "documentStoreVS"])
def test_a_document_store_comes_back_however_the_plan_uses_it(node: str, catalogue: NodeStore) -> None:
    plan = planned(DesignForm(name="Desk", sources=[FormSource(kind="store", store="HR policies")]), catalogue)
    (place,) = [one for one in plan.values if one.param == "selectedStore"]
    nodes = [
        one.model_copy(update={"node_name": node}) if one.node_name == "documentStore" else one for one in plan.nodes
    ]
    values = [one for one in plan.values if one is not place] + [place.model_copy(update={"value": "an-id"})]
    found = form_of(plan.model_copy(update={"nodes": nodes, "values": values}), "")
    assert found is not None
    assert (found.tools, [(one.kind, one.store) for one in found.sources]) == ([], [("store", "an-id")])


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ([{"kind": "store"}], "which needs it"),
        ([{"kind": "text", "text": "x", "store": "HR policies"}], "belongs to the kind"),
        ([{"kind": "store", "store": "HR policies"}, {"kind": "store", "store": "Drafts"}], "name one"),
    ],
    ids=["without a name", "of another kind", "two"],
)
def test_a_form_names_one_document_store_where_it_has_one(sources: list[dict[str, str]], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        DesignForm.model_validate({"name": "Desk", "sources": sources})


def test_what_a_form_cannot_say_is_no_form(catalogue: NodeStore) -> None:
    plan = planned(DesignForm(name="Desk"), catalogue)
    assert form_of(plan.model_copy(update={"operation": "update"}), "A desk") is None
    odd = plan.nodes[0].model_copy(update={"node_id": "x_0", "node_name": "multiQueryRetriever"})
    assert form_of(plan.model_copy(update={"nodes": [*plan.nodes, odd]}), "A desk") is None


def test_a_new_flow_that_is_declined_becomes_a_form_with_the_words_of_the_person(catalogue: NodeStore) -> None:
    plan = planned(DesignForm(name="Desk"), catalogue).model_copy(update={"declined": "Not understood."})
    assert form_of(plan, "A desk that loops") == DesignForm(name="Desk", prompt="A desk that loops")
    assert form_of(plan.model_copy(update={"operation": "update"}), "A desk that loops") is None


@pytest.mark.parametrize(("name", "fits"), [("a" * 60, True), ("größe_1", True), ("a" * 61, False), ("1st", False)])
def test_a_field_has_a_name_of_at_most_60_letters(name: str, fits: bool) -> None:
    if fits:
        assert FormField(name=name).name == name
    else:
        with pytest.raises(ValidationError, match="name"):
            FormField(name=name)
