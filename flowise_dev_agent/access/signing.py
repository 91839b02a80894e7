"""Signatures of certificates: Ed25519, with keys derived from SECRETS_KEY, and their check without a service.

The first key of SECRETS_KEY that is not revoked signs; what the others signed stays valid.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import ValidationError

from flowise_dev_agent.errors import CertificateNotSignableError, InvalidInputError
from flowise_dev_agent.patch import payload_sha256
from flowise_dev_agent.schemas.certificates import (
    Certificate,
    CertificateCheck,
    CertificateCode,
    CertificateKey,
    CertificateKeys,
    Signature,
    SignedCertificate,
)
from flowise_dev_agent.settings import Settings
from flowise_dev_agent.settings.base import items
from flowise_dev_agent.texts import text

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

#: Separates what these keys sign from all else.
_PURPOSE: Final = b"flowise-dev-agent certificates"
_ID_CHARS: Final = 16


@dataclass(frozen=True)
class CertificateSigner:
    """Signs certificates. `secrets`: SECRETS_KEY, in its order; `revoked`: ids of keys that may have leaked."""

    secrets: Sequence[bytes] = field(default=(), repr=False)
    revoked: Sequence[str] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Make the signer from the settings."""
        return cls(settings.database.secrets_keys, items(settings.database.certificate_keys_revoked))

    @property
    def keys(self) -> CertificateKeys:
        """All keys that sign, did, or were revoked."""
        known = [(key_id, public, key_id in self.revoked) for key_id, public, _ in self._own]
        current = next((key_id for key_id, _, revoked in known if not revoked), None)
        found = [
            CertificateKey(
                id=key_id, public_key=public, state="revoked" if gone else "current" if key_id == current else "earlier"
            )
            for key_id, public, gone in known
        ]
        here = {one.id for one in found}
        gone = [CertificateKey(id=one, public_key=None, state="revoked") for one in self.revoked if one not in here]
        return CertificateKeys(keys=[*found, *gone])

    def sign(self, certificate: Certificate) -> SignedCertificate:
        """Sign a certificate. Raises CertificateNotSignableError without a key."""
        for key_id, public, private in self._own:
            if key_id not in self.revoked:
                value = base64.b64encode(private.sign(_signed_bytes(certificate.model_dump(mode="json")))).decode()
                signature = Signature(key_id=key_id, public_key=public, value=value)
                return SignedCertificate(certificate=certificate, signature=signature)
        raise CertificateNotSignableError(text("error.certificates_not_signable"), hint=text("error.set_secrets_key"))

    @cached_property
    def _own(self) -> "list[tuple[str, str, Ed25519PrivateKey]]":
        """Id, public key and private key of each key of SECRETS_KEY."""
        # Loaded where it is needed: few services sign.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        found: list[tuple[str, str, Ed25519PrivateKey]] = []
        for secret in self.secrets:
            # The encryption key itself signs nothing.
            private = Ed25519PrivateKey.from_private_bytes(hmac.digest(secret, _PURPOSE, "sha256"))
            raw = private.public_key().public_bytes_raw()
            found.append((_key_id(raw), base64.b64encode(raw).decode(), private))
        return found


def check_certificate(
    document: str, *, flow_data: str | None = None, keys: CertificateKeys | None = None
) -> CertificateCheck:
    """Check the text of a certificate by known keys, and that a flow is the one that it is about.

    Raises InvalidInputError for a text that is no certificate.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        raw = json.loads(document)
        signed = SignedCertificate.model_validate(raw)
        public = base64.b64decode(signed.signature.public_key, validate=True)
        value = base64.b64decode(signed.signature.value, validate=True)
        # As the file has it: what a model makes of it may be the same for two texts.
        content = _signed_bytes(raw["certificate"])
        key = Ed25519PublicKey.from_public_bytes(public)
    except (ValueError, RecursionError, ValidationError) as error:
        raise InvalidInputError(text("error.not_a_certificate"), hint=text("error.not_a_certificate_hint")) from error
    key_id, known = _key_id(public), None if keys is None else _known(keys, _key_id(public), signed.signature)
    code: CertificateCode = "certificate_valid"
    try:
        key.verify(value, content)
        if key_id != signed.signature.key_id:
            code = "certificate_changed"
        elif known is not None and known.state == "revoked":
            code = "certificate_key_revoked"
        elif keys is not None and known is None:
            code = "certificate_key_unknown"
        elif flow_data is not None and not _is_of(signed.certificate, flow_data):
            code = "certificate_flow_changed"
        elif keys is None:
            code = "certificate_key_unchecked"
    except InvalidSignature:
        code = "certificate_changed"
    words = text(f"certificate.{code.removeprefix('certificate_')}", key=key_id)
    return CertificateCheck(
        code=code, valid=code == "certificate_valid", key_id=key_id, key=known and known.state, text=words
    )


def read_keys(document: str) -> CertificateKeys:
    """Keys of a text: as `GET /certificates/keys` answers, or one public key in base64. Raises InvalidInputError."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        if document.lstrip().startswith("{"):
            return CertificateKeys.model_validate_json(document)
        raw = base64.b64decode(document.strip(), validate=True)
        Ed25519PublicKey.from_public_bytes(raw)
    except (ValueError, ValidationError) as error:
        raise InvalidInputError(text("error.not_a_key"), hint=text("error.not_a_certificate_hint")) from error
    return CertificateKeys(keys=[CertificateKey(id=_key_id(raw), public_key=document.strip(), state="current")])


def _known(keys: CertificateKeys, key_id: str, signature: Signature) -> CertificateKey | None:
    found = [one for one in keys.keys if one.id == key_id and one.public_key in {None, signature.public_key}]
    return next(iter(sorted(found, key=lambda one: one.state != "revoked")), None)


def _is_of(certificate: Certificate, flow_data: str) -> bool:
    return payload_sha256(flow_data) == certificate.sha256 or content_sha256(flow_data) == certificate.content_sha256


def _key_id(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:_ID_CHARS]


def _signed_bytes(certificate: Any) -> bytes:
    return _PURPOSE + b"\n" + _canonical(certificate)


def content_sha256(flow_data: str) -> str:
    """SHA-256 of `flowData` as canonical JSON: the same for each layout of its text."""
    return hashlib.sha256(_canonical(json.loads(flow_data, parse_float=_number))).hexdigest()


def _number(digits: str) -> float | int:
    """A whole number without its `.0`, as JavaScript writes it."""
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _canonical(value: Any) -> bytes:
    """JSON with sorted keys and without spaces; half surrogates stay escapes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
