"""Certificates of accepted versions, made from what is stored."""

from uuid import UUID

from flowise_dev_agent.access.signing import CertificateSigner, content_sha256
from flowise_dev_agent.errors import NoCertificateError
from flowise_dev_agent.flows.proposals import Proposals
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.model_uses import model_uses
from flowise_dev_agent.persistence import Acceptance, Acceptances, Blobs, Sessions
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.schemas.base import read, view_of
from flowise_dev_agent.schemas.certificates import (
    AuditLink,
    Certificate,
    CertificateKeys,
    CertifiedCriterion,
    CertifiedTest,
    SignedCertificate,
)
from flowise_dev_agent.schemas.session import ResultView
from flowise_dev_agent.schemas.verdict import Trial, Verdict
from flowise_dev_agent.texts import text


class CertificateService:
    """Makes the certificates of accepted versions."""

    def __init__(
        self,
        signer: CertificateSigner,
        *,
        sessions: Sessions,
        acceptances: Acceptances,
        blobs: Blobs,
        proposals: Proposals,
    ) -> None:
        self._signer = signer
        self._sessions = sessions
        self._acceptances = acceptances
        self._blobs = blobs
        self._proposals = proposals

    def keys(self) -> CertificateKeys:
        """Public keys that certificates are checked with."""
        return self._signer.keys

    async def of_session(self, session_id: UUID) -> SignedCertificate:
        """The certificate of the version that a session ended with.

        Raises SessionNotFoundError, NoCertificateError and CertificateNotSignableError.
        """
        await self._sessions.get(session_id)
        accepted = await self._acceptances.of_session(session_id)
        if accepted is None or accepted.result is None or not accepted.is_newest:
            raise NoCertificateError(text("error.no_certificate"), hint=text("error.no_certificate_hint"))
        flow_data = await self._blobs.get(accepted.sha256)
        schemas = await self._proposals.schemas(accepted.instance_id)
        uses = model_uses(GraphIR.from_flow_data(flow_data), schemas)
        models = sorted({f"{use.component}: {use.model}" for use in uses})
        return self._signer.sign(_certificate(accepted, flow_data, models))


def _certificate(accepted: Acceptance, flow_data: str, models: list[str]) -> Certificate:
    result = read(ResultView, accepted.result or {})
    verdict = result.verdict or Verdict(done=False)
    failed = set(verdict.failed_trials)
    return view_of(
        Certificate,
        accepted,
        instance=accepted.instance_id,
        flow_name=masked(accepted.name),
        flow_version=f"v{accepted.version}",
        content_sha256=content_sha256(flow_data),
        models=models,
        headline=verdict.headline,
        tests=[_test(trial, number in failed) for number, trial in enumerate(result.tests, start=1)],
        criteria=[view_of(CertifiedCriterion, one) for one in verdict.criteria],
        ways=verdict.ways,
        audit=[AuditLink.model_validate(link) for link in accepted.links],
    )


def _test(trial: Trial, judged_wrong: bool) -> CertifiedTest:
    held = trial.passed or trial.category is not None
    passed = trial.mark.good if trial.mark else trial.passed and not judged_wrong
    level = "person" if trial.mark else "simulated" if trial.simulated else "verified"
    return CertifiedTest(
        test=trial.test,
        question=trial.question,
        trial=trial.trial,
        result="not_held" if not held else "passed" if passed else "failed",
        level=level if held else None,
    )
