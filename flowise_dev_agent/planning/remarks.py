"""Findings on a compiled flow that ops can answer, and those that they cannot."""

from typing import Final

from flowise_dev_agent.patch import Finding
from flowise_dev_agent.patch.validate.models import MODEL_ENDED, MODEL_ENDS
from flowise_dev_agent.patch.validate.providers import SETTING_IGNORED

#: Finding code of texts that read files where nobody can upload any.
FILES_NOT_TAKEN: Final = "FILES_NOT_TAKEN"
#: Findings that are no errors once the person has decided to go on without a credential.
CREDENTIAL_CODES: Final = frozenset({"CREDENTIAL_UNBOUND", "NESTED_CREDENTIAL_UNBOUND"})
#: Warnings that ops do not answer: the server's and the person's own matters, titles, and fields left out by code.
_NOT_FOR_OPS: Final = frozenset(
    {
        *CREDENTIAL_CODES,
        MODEL_ENDED,
        MODEL_ENDS,
        FILES_NOT_TAKEN,
        "CREDENTIAL_MAY_LACK",
        "MEMORY_FORGETS",
        "SERVER_SETTING_NEEDED",
        SETTING_IGNORED,
        "UNKNOWN_PARAM",
        "UNVERIFIED_NODE",
        "UPSERT_DOUBLES",
        "STEP_WITHOUT_TITLE",
        "VERSION_DRIFT",
    }
)


def is_remark(finding: Finding) -> bool:
    """True for a warning on something that the change caused and ops can correct."""
    return finding.severity == "warning" and finding.origin == "new" and finding.code not in _NOT_FOR_OPS
