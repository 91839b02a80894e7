"""The write guard: only the very bytes that passed validation reach Flowise.

Validation stores the SHA-256 of the text it checked in the session's state; the guard sits in another node, right
before the call, and hashes the text that is about to be sent. Neither computes what it compares with itself, so a
payload that changed in between cannot pass. Whoever writes clears the stored hash: one authorisation, one write.
"""

from flowise_dev_agent.errors import HashMismatchError, ValidationRequiredError
from flowise_dev_agent.patch import payload_sha256


def authorize(flow_data: str, validated_sha256: str | None) -> str:
    """Return the SHA-256 of `flow_data` if validation has passed exactly these bytes.

    Raises:
        ValidationRequiredError: nothing is validated, or the authorisation was spent.
        HashMismatchError: other bytes were validated.
    """
    if not validated_sha256:
        raise ValidationRequiredError(
            "The flow was not written: it has not passed validation since the last write.",
            hint="Validate the compiled flow and write it again.",
        )
    actual = payload_sha256(flow_data)
    if actual != validated_sha256:
        raise HashMismatchError(
            "The flow was not written: it differs from the flow that passed validation.",
            hint="Validate the flow as it is now and write it again.",
            details={"validated": validated_sha256, "offered": actual},
        )
    return actual
