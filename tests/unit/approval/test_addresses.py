"""Addresses: read as Node reads them, in one way, with scheme, host and port; named and forbidden by people."""

import json
import random
import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from flowise_dev_agent.approval.binding import capability_of
from flowise_dev_agent.approval.manual_edits import edit_findings
from flowise_dev_agent.approval.ops_in_plan import outside_plan
from flowise_dev_agent.devkit.flowise.install import node_binary
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.models.parsing import UnusableOutputError
from flowise_dev_agent.patch import GraphIR, SetParam, compile_ops
from flowise_dev_agent.patch.model.addresses import Address, addresses_in, bare_address
from flowise_dev_agent.patch.model.reach import reached
from flowise_dev_agent.patch.views.graph_view import GraphView
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.passes.planned_values import form_addresses
from flowise_dev_agent.planning.plan_checks import checked_plan
from flowise_dev_agent.schemas.plan import Part
from tests.support.requests import UPDATE, plan_request
from tests.unit.agent.test_plan_binding import CHAT, contract, planned, value

ALLOWED: Final = ("http://127.0.0.1", "https://allowed.example", "https://allowed.example:8443", "redis://cache:6379")
#: Addresses that once were read as the allowed one, and that Node sends elsewhere.
FOUND: Final = [
    "http://127.0.0.1\n7:43090/v1",
    "http://127.0.0.1\r7/v1",
    "http://127.0.0.1\t7/v1",
    "https://u@allowed.example:x@evil.example/v1",
    "https://allowed.example\n@evil.example/v1",
    "https://allowed.example'@evil.example/v1",
    'https://allowed.example"@evil.example/v1',
    "https://allowed.example`@evil.example/v1",
    "https://allowed.example<@evil.example/v1",
    "https://allowed.example\u2028@evil.example/v1",
    "https://allowed.example\u00a0@evil.example/v1",
    "https://allowed.example,@evil.example/v1",
    "https://allowed.example;@evil.example/v1",
    "https://allowed.example(@evil.example/v1",
    "https://allowed.example{{ x }}@evil.example/v1",
    f"https://{'u' * 250}@evil.example/v1",
    "https://allowed.example:@evil.example",
    "https:evil.example/v1",
    "https:/evil.example",
    "https:///evil.example",
    "\\\\evil.example/v1",
    "http://127.0.0.1:43090/v1",
    "https://127.0.0.1/v1",
    "http://0177.0.0.1:81/",
    "https://allowed.example.evil.example",
    "postgres://allowed.example\\@evil.example/db",
]
#: Parts of which addresses are made: what readers differ on.
PARTS: Final = [
    *("http://", "https://", "HTTPS://", "ht\ttps://", "https:", "https:/", "https:\\\\", "https:///", "//", "ws://"),
    *("redis://", "http:", "https:// ", "allowed.example", "allowed.example", "evil.example", "127.0.0.1", "127.0.0.1"),
    *("cache", ":6379", ":8443", ":443", ":80", ":43090", "7", ".", "..", "@", "@", "@", ":", ":x", "u", "u:p@", "/"),
    *("/v1", "\\", "?", "#", "\n", "\r", "\t", "\x00", "\x1f", " ", "\u00a0", "\u2028", "\u200b", "\ufeff", "\u00ad"),
    *("'", '"', "`", "<", ">", "^", "|", "%", "%2e", "%40", "%00", "[", "]", "[::1]", "(", ")", ",", ";", "{{ x }}"),
    *("${x}", "{", "}", "&", "=", "!", "*", "\uff0e", "\uff45vil", "\u3002", "0x7f.1", "2130706433", "ß", "xn--", "é"),
]
ENDS: Final = (
    "",
    "/v1",
    "@evil.example/v1",
    ".evil.example",
    "7:43090/v1",
    ":x@evil.example",
    "#@evil.example",
    "\n@evil.example",
)
_NODE: Final = """
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const read = (text) => {
  const url = URL.parse(text);
  return url && url.protocol + "//" + url.host;
};
process.stdout.write(JSON.stringify(texts.map(read)));
"""


def as_node(texts: list[str]) -> list[str | None]:
    done = subprocess.run(
        [str(node_binary()), "-e", _NODE],
        input=json.dumps(texts).encode(),
        capture_output=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def misread(texts: list[str], catalogue: NodeStore) -> list[tuple[str, str | None]]:
    """Texts that are allowed, in a field for addresses or in a text of JSON, and that Node sends elsewhere."""
    schema = catalogue.schemas["chatOpenAI"]
    wrong: list[tuple[str, str | None]] = []
    for text, called in zip(texts, as_node(texts), strict=True):
        for param, written in (("basepath", text), ("baseOptions", json.dumps({"x": text}))):
            read = reached(param, written, schema)
            is_allowed = all(one.clear and one.origin in ALLOWED for one in read)
            if is_allowed and called and called.partition("//")[2] and (not read or called not in ALLOWED):
                wrong.append((text, called))
    return wrong


def generated(seed: int, count: int) -> Iterator[str]:
    """Allowed addresses with an end and a few parts put in, and mere rows of parts."""
    chance = random.Random(seed)  # noqa: S311 - to be repeated
    for _ in range(count):
        if chance.random() < 0.2:
            yield "".join(chance.choices(PARTS, k=chance.randint(2, 6)))
            continue
        text = chance.choice(ALLOWED) + chance.choice(ENDS)
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(PARTS) + text[at:]
        yield text


@pytest.mark.parametrize("text", FOUND)
def test_p85_p111_what_node_sends_elsewhere_is_not_read_as_the_allowed_address(text: str) -> None:
    read = addresses_in(text) or bare_address(text)
    assert read
    assert not all(one.clear and one.origin in ALLOWED[:2] for one in read)


def test_p85_no_generated_address_is_allowed_that_node_sends_elsewhere(catalogue: NodeStore) -> None:
    assert misread([*FOUND, *generated(1, 3_000)], catalogue) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 7))
def test_p85_none_of_many_generated_addresses_is_allowed_that_node_sends_elsewhere(
    seed: int, catalogue: NodeStore
) -> None:
    assert misread([*generated(seed, 20_000)], catalogue) == []


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://Allowed.example/v1", "https://allowed.example"),
        ("https://allowed.example:443/v1?q=1", "https://allowed.example"),
        ("http://2130706433/latest", "http://127.0.0.1"),
        ("http://0x7f.1", "http://127.0.0.1"),
        ("https://m\u00fcller.example/", "https://xn--mller-kva.example"),
        ("https://{{ $vars.host }}/v1", "https://{{$vars.host}}"),
        ("https://allowed.example/{{ question }}", "https://allowed.example"),
        ("postgres://u:p@DB:5432/x", "postgres://db:5432"),
        ("https://[::1]:8443/x", "https://[::1]:8443"),
        ("fetch('https://allowed.example/x');\nreturn 1;", "https://allowed.example"),
        ("(see https://allowed.example:8443.)", "https://allowed.example:8443"),
        ("servers:\n  - url: https://allowed.example\npaths:", "https://allowed.example"),
        ("file:///etc/passwd", "file:"),
    ],
)
def test_an_address_has_scheme_host_and_port(text: str, origin: str) -> None:
    assert addresses_in(text) == [Address(origin)]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:34699/v1/chat", None),
        ("http://127.0.0.1:34699\n/v1\t", None),
        ("http://127.0.0.1:43090/v1", "reaches"),
        ("https://127.0.0.1:34699/v1", "reaches"),
        ("http://127.0.0.1:3469\n9/v1", "more than one way"),
    ],
)
def test_p85_the_port_and_one_reading_are_part_of_the_approval(
    address: str, reason: str | None, catalogue: NodeStore
) -> None:
    gateway = [value("chatOpenAI_0", "basepath", "http://127.0.0.1:34699/v1")]
    plan = contract(planned("chatOpenAI_0"), values=gateway)
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    op = SetParam(node_id="chatOpenAI_0", param_name="basepath", value=address)
    found = outside_plan([op], plan, capability_of(plan, catalogue.schemas, GraphIR.empty()), catalogue.schemas, base)
    assert (reason in found[0].detail) if reason else not found


def test_p85_words_about_an_address_allow_nothing(catalogue: NodeStore) -> None:
    said = "It must never call http://evil.example/v1, only http://good.example/v1"
    plan = contract(planned("chatOpenAI_0"), goal=said, steps=[said], parts=[Part(id="p1", quote=said)])
    assert capability_of(plan, catalogue.schemas, GraphIR.empty()).hosts == []


def test_p85_p111_an_address_that_can_be_read_in_two_ways_is_in_no_approval(catalogue: NodeStore) -> None:
    odd = [value("chatOpenAI_0", "basepath", "https://allowed.example\n@evil.example/v1")]
    assert capability_of(contract(planned("chatOpenAI_0"), values=odd), catalogue.schemas, GraphIR.empty()).hosts == []


def test_p85_an_address_that_can_be_read_in_two_ways_is_refused_at_the_plan(catalogue: NodeStore) -> None:
    odd = value("chatOpenAI_0", "basepath", "http://127.0.0.1\n7:43090/v1")
    plan = contract(planned("chatOpenAI_0"), values=[odd])
    base = compile_ops(GraphIR.empty(), CHAT, catalogue.schemas).graph
    request = plan_request(catalogue, "x", intent=UPDATE, flow=GraphView(base))
    with pytest.raises(UnusableOutputError, match="more than one way"):
        checked_plan(plan, request)
    clear = plan.model_copy(update={"values": []})
    edit = {"edits": {"values": [{"node_id": "chatOpenAI_0", "param": "basepath", "value": odd.value}]}}
    assert [one.code for one in edit_findings(clear, edit, base, catalogue.schemas)] == ["ADDRESS_UNCLEAR"]
    shown = form_addresses(PlanContext(plan=plan, request=request, by_form=True)).plan
    assert [one.code for one in shown.findings] == ["ADDRESS_UNCLEAR"]
