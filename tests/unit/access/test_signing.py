"""Certificates are checked without a service: each change of them, another flow and another key are told apart."""

import base64
import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from flowise_dev_agent.access.signing import CertificateSigner, check_certificate, content_sha256, read_keys
from flowise_dev_agent.errors import CertificateNotSignableError, InvalidInputError
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.schemas.certificates import AuditLink, Certificate, CertifiedCriterion, CertifiedTest

OLD, NEW = bytes([1] * 32), bytes([2] * 32)
FLOW = '{"nodes":[{"id":"a","data":{"temperature":1.0,"text":"Gr\\u00fc\\u00dfe"}}],"edges":[]}'
CERTIFICATE = Certificate(
    session_id=UUID(int=1),
    instance="main",
    endpoint="http://flowise.test",
    flowise_version="3.1.4",
    chatflow_id="c1",
    flow_name="Bot",
    flow_version="v4",
    sha256=payload_sha256(FLOW),
    content_sha256=content_sha256(FLOW),
    models=["chatOpenAI: gpt-5-mini"],
    planned_with="openai gpt-5",
    headline="works",
    tests=[CertifiedTest(test="t1", question="Hello?", trial=1, result="passed", level="simulated")],
    criteria=[CertifiedCriterion(id="c1", text="It greets.", state="shown", level="simulated", judged_by="model")],
    ways=["Nothing reached B."],
    accepted_at=datetime(2026, 1, 1, tzinfo=UTC),
    accepted_by="ada",
    audit=[AuditLink(chain=UUID(int=1), seq=3, action="result_review.accept", hash="ab")],
)


def document(signer: CertificateSigner) -> dict[str, Any]:
    return json.loads(signer.sign(CERTIFICATE).model_dump_json())


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


@pytest.mark.parametrize("path", sorted(leaves(CERTIFICATE.model_dump(mode="json")), key=str), ids=str)
def test_each_changed_field_of_a_certificate_is_found(path: tuple[Any, ...]) -> None:
    signer = CertificateSigner([NEW])
    changed = document(signer)
    inner = changed["certificate"]
    for key in path[:-1]:
        inner = inner[key]
    others: dict[Any, Any] = {"works": "fails", "passed": "failed", "simulated": "verified", "shown": "failed"}
    old = inner[path[-1]]
    inner[path[-1]] = others.get(old, "person" if old == "model" else old + 1 if isinstance(old, int) else f"{old}0")
    if path[-1] in {"session_id", "chain"}:
        inner[path[-1]] = str(UUID(int=9))
    if path[-1] in {"accepted_at"}:
        inner[path[-1]] = "2026-01-02T00:00:00Z"
    text = json.dumps(changed)
    if path == ("format",):
        with pytest.raises(InvalidInputError):
            check_certificate(text, keys=signer.keys)
        return
    found = check_certificate(text, keys=signer.keys)
    assert (found.code, found.valid) == ("certificate_changed", False)


@pytest.mark.parametrize("list_", ["tests", "criteria", "ways", "audit", "models"])
def test_a_certificate_with_a_result_left_out_or_another_signature_is_found(list_: str) -> None:
    signer = CertificateSigner([NEW])
    changed = document(signer)
    changed["certificate"][list_].pop()
    assert check_certificate(json.dumps(changed), keys=signer.keys).code == "certificate_changed"
    named = document(signer)
    named["signature"]["key_id"] = "0" * 16
    assert check_certificate(json.dumps(named), keys=signer.keys).code == "certificate_changed"


def test_a_certificate_is_valid_in_another_layout_and_of_an_export_laid_out_anew() -> None:
    signer = CertificateSigner([NEW])
    text = json.dumps(document(signer), indent=4, sort_keys=True, ensure_ascii=False)
    assert check_certificate(text, keys=signer.keys).code == "certificate_valid"
    laid_out = json.dumps(json.loads(FLOW.replace("1.0", "1")), indent=2, ensure_ascii=False)
    for flow in (FLOW, laid_out):
        assert check_certificate(text, flow_data=flow, keys=signer.keys).valid
    for flow in (FLOW.replace("1.0", "1.1"), FLOW.replace('"a"', '"b"'), laid_out.replace("ü", "u")):
        assert check_certificate(text, flow_data=flow, keys=signer.keys).code == "certificate_flow_changed"


def test_each_fate_of_a_key_has_its_code() -> None:
    before = CertificateSigner([OLD])
    text = json.dumps(document(before))
    old_id = before.keys.keys[0].id
    rotated = CertificateSigner([NEW, OLD])
    assert [key.state for key in rotated.keys.keys] == ["current", "earlier"]
    assert rotated.sign(CERTIFICATE).signature.key_id != old_id
    known = {
        "certificate_valid": [before.keys, rotated.keys, read_keys(before.keys.keys[0].public_key or "")],
        "certificate_key_unknown": [CertificateSigner([NEW]).keys, CertificateSigner().keys],
        "certificate_key_revoked": [
            CertificateSigner([NEW], [old_id]).keys,
            CertificateSigner([NEW, OLD], [old_id]).keys,
            CertificateSigner([OLD], [old_id]).keys,
        ],
        "certificate_key_unchecked": [None],
    }
    for code, lists in known.items():
        for keys in lists:
            found = check_certificate(text, keys=keys)
            assert (found.code, found.valid, found.key_id) == (code, code == "certificate_valid", old_id)
    assert check_certificate(text, keys=rotated.keys).key == "earlier"
    assert read_keys(rotated.keys.model_dump_json()) == rotated.keys


def test_who_signs_with_a_key_of_their_own_is_not_believed() -> None:
    ours, theirs = CertificateSigner([NEW]), CertificateSigner([OLD])
    forged = document(theirs)
    assert check_certificate(json.dumps(forged), keys=ours.keys).code == "certificate_key_unknown"
    claimed = copy.deepcopy(forged)
    claimed["signature"]["key_id"] = ours.keys.keys[0].id
    assert check_certificate(json.dumps(claimed), keys=ours.keys).code == "certificate_changed"
    claimed["signature"]["public_key"] = ours.keys.keys[0].public_key
    assert check_certificate(json.dumps(claimed), keys=ours.keys).code == "certificate_changed"


def test_nothing_signs_without_a_key_that_is_not_revoked() -> None:
    revoked = CertificateSigner([NEW]).keys.keys[0].id
    for signer in (CertificateSigner(), CertificateSigner([NEW], [revoked])):
        with pytest.raises(CertificateNotSignableError):
            signer.sign(CERTIFICATE)
    assert CertificateSigner([NEW, OLD], [revoked]).sign(CERTIFICATE).signature.key_id != revoked


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"certificate": {}, "signature": {}}', "[" * 100_000])
def test_what_is_no_certificate_and_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        check_certificate(text)
    with pytest.raises(InvalidInputError):
        read_keys(text)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        read_keys(base64.b64encode(b"short").decode())
