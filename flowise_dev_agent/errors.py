"""The one exception tree.

Every error that can reach a person carries three things: a stable ``code`` (safe to match on), a message that says
what happened and where, and a ``hint`` that says what to do. Messages never contain secrets, SQL or stack frames:
whoever raises decides what a person may read. ``details`` is small JSON for machines under the same rule.
"""

from typing import Any, ClassVar


class AgentError(Exception):
    """Root of everything this package raises on purpose."""

    code: ClassVar[str] = "internal_error"
    #: Trying the very same thing again may help (a timeout, a restart); callers with a retry policy look at it.
    transient: ClassVar[bool] = False
    #: Status of the HTTP answer. With 500 the text stays inside, but for a ConfigurationError.
    http_status: ClassVar[int] = 500

    def __init_subclass__(
        cls, *, code: str | None = None, status: int | None = None, transient: bool | None = None
    ) -> None:
        """Take facts from the class statement; what is left out is as in the base class."""
        cls.code = cls.code if code is None else code
        cls.http_status = cls.http_status if status is None else status
        cls.transient = cls.transient if transient is None else transient

    def __init__(self, message: str, *, hint: str | None = None, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = details or {}

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def as_problem(self) -> dict[str, Any]:
        """The public form: ``{code, detail, hint?, details?}``, JSON-ready."""
        problem: dict[str, Any] = {"code": self.code, "detail": self.message}
        if self.hint:
            problem["hint"] = self.hint
        if self.details:
            problem["details"] = self.details
        return problem


def code_of(error: BaseException) -> str:
    """Code of an error; of one that is not ours, that of the root."""
    return error.code if isinstance(error, AgentError) else AgentError.code


class ConfigurationError(AgentError, code="configuration_error", status=500):
    """The settings cannot work as given; raised before anything is started."""


class InvalidInputError(AgentError, code="invalid_input", status=422):
    """A request that is well-formed but cannot be meant: unknown instance, bad answer, oversize text."""


class NodeTypeNotFoundError(InvalidInputError, code="node_type_not_found", status=404):
    """The instance has no node type of this name. ``details.close`` lists names like it."""


class VersionNotFoundError(InvalidInputError, code="version_not_found", status=404):
    """The flow or the session has no version of this name, or no longer."""


class InvalidAnswerError(InvalidInputError, code="invalid_answer"):
    """An answer that does not fit the open interrupt's schema; the interrupt stays open."""


class NeedsPersonError(InvalidInputError, code="needs_person"):
    """A question whose answer is a person's to give; the session goes on waiting."""


class SecretInTextError(InvalidInputError, code="secret_in_text"):
    """A text that would be kept and shown holds a secret; nothing was stored. ``details.field`` says where."""


class WebhookUrlError(InvalidInputError, code="webhook_url_refused"):
    """A `webhook_url` that nothing may be sent to. ``details.reason`` says by which rule."""


class WebhookSecretError(InvalidInputError, code="webhook_secret_unavailable"):
    """A webhook was asked for that there is no way to sign, or to hand over the secret of."""


# --- Flowise -----------------------------------------------------------------------------------------------------


class FlowiseError(AgentError, code="flowise_error", status=502):
    """A call to a Flowise server did not do what was asked. The message quotes Flowise's own words."""


class FlowiseUnreachableError(FlowiseError, code="flowise_unreachable", transient=True):
    """Connection refused, name not found, TLS failure: nothing was sent."""


class FlowiseTimeoutError(FlowiseError, code="flowise_timeout", status=504, transient=True):
    """No answer in time, or a proxy waited no longer. For a write this is ambiguous: it may have happened."""


class FlowiseConnectionLostError(FlowiseError, code="flowise_connection_lost", transient=True):
    """The connection broke after the request was sent, or a proxy says so. For a write this is ambiguous: it may have
    happened."""


class FlowiseAuthError(FlowiseError, code="flowise_auth"):
    """401 or 403: the API key is wrong or lacks a permission."""


class FlowiseNotFoundError(FlowiseError, code="flowise_not_found", status=404):
    """404, or a 500 by which Flowise says that something does not exist."""


class FlowiseRejectedError(FlowiseError, code="flowise_rejected"):
    """Any other 4xx: Flowise refused the request as sent."""


class FlowiseRateLimitedError(FlowiseError, code="flowise_rate_limited", transient=True):
    """429."""


class FlowiseServerError(FlowiseError, code="flowise_server_error"):
    """500, of a prediction any 5xx. Flowise answers 500 to almost every mistake, so this is not transient by itself."""


class FlowiseUnexpectedResponseError(FlowiseError, code="flowise_unexpected_response"):
    """200 with HTML (unknown path), an empty body, or JSON of another shape."""


# --- Patch and write path ----------------------------------------------------------------------------------------


class PatchError(AgentError, code="patch_error", status=422):
    """Ops that cannot be parsed or compiled. ``findings`` says which op, what was found and what is allowed."""


class ValidationRequiredError(AgentError, code="validation_required"):
    """A write without a validation of these very bytes in this iteration."""


class HashMismatchError(AgentError, code="hash_mismatch"):
    """A write of bytes other than those that passed validation."""


class WriteFailedError(AgentError, code="write_failed", status=502):
    """Flowise did not take the flow, or what it holds differs from what was sent."""


class StaleBaseError(WriteFailedError, code="stale_base", status=409):
    """The flow on Flowise is no longer the one that the change was made for; nothing was written."""


# --- Reasoning ---------------------------------------------------------------------------------------------------


class ReasoningError(AgentError, code="reasoning_failed", status=502):
    """The reasoning phase gave no usable result."""


class ModelUnavailableError(ReasoningError, code="model_unavailable", transient=True):
    """The provider cannot be reached, is overloaded, limits the rate or timed out; its SDK has retried already."""


class ModelAuthError(ReasoningError, code="model_auth"):
    """The provider refuses the key or the model name."""


class BudgetSpentError(ReasoningError, code="budget_spent"):
    """The session may spend no more on model calls; ``details`` has the ``usage`` of the phase so far."""


class ModelOutputError(ReasoningError, code="model_output"):
    """The model answered, but not in the shape that was asked for."""


class ModelRefusedError(ModelOutputError, code="model_refused"):
    """The model, or a filter of its provider, declined to answer."""


class ModelContextError(ModelOutputError, code="model_context"):
    """The prompt is longer than what the model reads at once."""


# --- Sessions ----------------------------------------------------------------------------------------------------


class SessionNotFoundError(AgentError, code="session_not_found", status=404):
    """No session has this id."""


class ScopeMissingError(AgentError, code="scope_missing", status=403):
    """The caller's key does not allow this. ``details`` has the scopes that do (`needs`) and those of the key."""


class ApprovalNeededError(AgentError, code="approval_needed", status=403):
    """The settings ask for another person, or for two; nothing was written."""


class SignInFailedError(AgentError, code="sign_in_failed", status=403):
    """The person is not signed in: the provider refused, or what came back is not to be trusted."""


class SignInUnavailableError(AgentError, code="sign_in_unavailable", status=503, transient=True):
    """The OpenID Connect provider does not answer as the standard says; keys of the service still work."""


class KeyNotFoundError(AgentError, code="key_not_found", status=404):
    """No key has this id."""


class OwnerNotFoundError(AgentError, code="owner_not_found", status=404):
    """No owner has this id."""


class KeyConflictError(AgentError, code="key_conflict", status=409):
    """The key is revoked, or its name is that of another key in use; nothing was changed."""


class ConnectionNotStorableError(AgentError, code="connection_not_storable", status=409):
    """A connection that the environment sets, or a service that may keep no keys; nothing was changed."""


class ShareNotFoundError(AgentError, code="share_not_found", status=404):
    """No link of this owner has this id."""


class ShareEndedError(AgentError, code="share_ended", status=410):
    """A link that this service made, and that opens nothing any more."""


class ShareNotSignableError(AgentError, code="share_not_signable", status=409):
    """A service without a key to sign links with; nothing was made."""


class CertificateNotSignableError(AgentError, code="certificate_not_signable", status=409):
    """A service without a key to sign certificates with."""


class GuardNotFoundError(AgentError, code="guard_not_found", status=404):
    """A flow that is not guarded."""


class NoCertificateError(AgentError, code="no_certificate", status=409):
    """A session in which no tested version was accepted, or whose tests are not kept."""


class SessionsOpenError(AgentError, code="sessions_open", status=409):
    """Sessions go on with a Flowise server that a request would replace by another one; nothing was changed."""


class ServerChangedError(AgentError, code="server_changed", status=409):
    """The instance of a session is another Flowise server by now; nothing was read or written there."""


class ConnectionUnreadableError(AgentError, code="connection_unreadable", status=503):
    """The connection made at the page was encrypted with a key that is no longer one of `SECRETS_KEY`: nothing else is
    used in its place."""


class DeliveryNotFoundError(AgentError, code="delivery_not_found", status=404):
    """The session has no webhook delivery with this id."""


class AttachmentNotFoundError(AgentError, code="attachment_not_found", status=404):
    """No attachment has this id; one that no session used may have expired."""


class ArtifactNotFoundError(AgentError, code="artifact_not_found", status=404):
    """No artifact has this id here; it may have gone by its age or with its session."""


class NoPlanError(AgentError, code="design_not_found", status=404):
    """A session has no plan that could be shown as a design."""


class NotAFlowError(InvalidInputError, code="not_a_flow", status=400):
    """A text that should be a flow and is none: not JSON, or without nodes and edges."""


class FlowTestNotFoundError(AgentError, code="flow_test_not_found", status=404):
    """There is no test of a flow with this id, or of a session with this number."""


class TraceNotFoundError(AgentError, code="trace_not_found", status=404):
    """The session has no trace with this hash."""


class PatternNotFoundError(AgentError, code="pattern_not_found", status=404):
    """No pattern of this owner has this id."""


class MemoryNotFoundError(AgentError, code="memory_not_found", status=404):
    """No note of this owner has this id."""


class SessionExistsError(AgentError, code="session_exists", status=409):
    """A session with this id exists already; nothing was changed."""


class SessionConflictError(AgentError, code="session_conflict", status=409):
    """The session is not in the state that the request needs (answered meanwhile, completed, running)."""


class PreconditionFailedError(AgentError, code="precondition_failed", status=412):
    """The resource is no longer in the state that the request's `If-Match` names. `details.etag` is the new
    one's."""


class IdempotencyKeyReusedError(SessionConflictError, code="idempotency_key_reused"):
    """An Idempotency-Key came with another request before."""


class RequestInProgressError(SessionConflictError, code="request_in_progress"):
    """The first request with an Idempotency-Key has not ended yet."""


class AnswerNotKeptError(SessionConflictError, code="answer_not_kept"):
    """A request was carried out before, and its answer held a secret."""


class CheckpointVersionError(AgentError, code="checkpoint_version"):
    """A checkpoint was written by a newer version of the service."""


class LeaseLostError(AgentError, code="lease_lost"):
    """Another worker owns this run now. Ends the run silently; never shown to a person."""


class DatabaseUnavailableError(AgentError, code="database_unavailable", status=503, transient=True):
    """Postgres does not answer; everything recovers by itself once it does."""
