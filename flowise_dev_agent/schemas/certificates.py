"""Certificates of accepted versions, and the keys that sign them."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from flowise_dev_agent.schemas.base import Contract, Worded
from flowise_dev_agent.schemas.verdict import CriterionState, Headline, Level

KeyState = Literal["current", "earlier", "revoked"]
#: What a check of a certificate finds, the gravest first.
CertificateCode = Literal[
    "certificate_changed",
    "certificate_key_revoked",
    "certificate_key_unknown",
    "certificate_flow_changed",
    "certificate_key_unchecked",
    "certificate_valid",
]


class CertifiedTest(Contract):
    """A trial of a test."""

    test: str | None
    question: str
    trial: int
    result: Literal["passed", "failed", "not_held"]
    level: Level | None = Field(description="`verified`: held for real; `simulated`: with stand-ins.")


class CertifiedCriterion(Contract):
    """A condition of success, as judged."""

    id: str
    text: str
    state: CriterionState
    level: Level | None
    judged_by: Literal["code", "model", "person"]


class AuditLink(Contract):
    """A row of the audit log."""

    chain: UUID
    seq: int
    action: str
    hash: str


class Certificate(Contract):
    """A version of a flow, the tests that it was accepted with, and who accepted it."""

    format: Literal["flowise-dev-agent certificate 1"] = "flowise-dev-agent certificate 1"
    session_id: UUID
    instance: str
    endpoint: str | None
    flowise_version: str | None = Field(description="As last read from the server before.")
    chatflow_id: str
    flow_name: str
    flow_version: str = Field(description="`v4`: over all sessions of the flow.")
    sha256: str = Field(description="Of the exact bytes of `flowData`.")
    content_sha256: str = Field(description="Of `flowData` as canonical JSON, for an export that is laid out anew.")
    models: list[str] = Field(description="Models of the flow.")
    planned_with: str | None = Field(description="Engine and model that planned and judged.")
    headline: Headline | None
    tests: list[CertifiedTest]
    criteria: list[CertifiedCriterion]
    ways: list[str] = Field(description="What stand-ins showed, and what no test reached.")
    accepted_at: datetime
    accepted_by: str
    audit: list[AuditLink] = Field(description="The rows of the answer and of the write.")


class Signature(Contract):
    """An Ed25519 signature, in base64, of the canonical JSON of a certificate."""

    key_id: str = Field(description="The first 16 hexadecimal digits of the SHA-256 of the public key.")
    public_key: str
    value: str


class SignedCertificate(Contract):
    """A certificate with its signature. `flowise-dev-agent verify` checks it without a service."""

    certificate: Certificate
    signature: Signature


class CertificateKey(Contract):
    """A key of the service. `public_key` is null for a revoked one that `SECRETS_KEY` has no longer."""

    id: str
    public_key: str | None
    state: KeyState


class CertificateKeys(Contract):
    """Keys that sign certificates, or did."""

    keys: list[CertificateKey]


class CertificateCheck(Worded):
    """Result of a check of a certificate."""

    code: CertificateCode
    valid: bool
    text: str
    key_id: str
    key: KeyState | None = Field(description="Null if the key is not among the known ones.")
