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


class ConfigurationError(AgentError):
    """The settings cannot work as given; raised before anything is started."""

    code = "configuration_error"


class InvalidInputError(AgentError):
    """A request that is well-formed but cannot be meant: unknown instance, bad answer, oversize text."""

    code = "invalid_input"


class NodeTypeNotFoundError(InvalidInputError):
    """The instance has no node type of this name. ``details.close`` lists names like it."""

    code = "node_type_not_found"


class VersionNotFoundError(InvalidInputError):
    """The flow or the session has no version of this name, or no longer."""

    code = "version_not_found"


class InvalidAnswerError(InvalidInputError):
    """An answer that does not fit the open interrupt's schema; the interrupt stays open."""

    code = "invalid_answer"


class NeedsPersonError(InvalidInputError):
    """A question whose answer is a person's to give; the session goes on waiting."""

    code = "needs_person"


class SecretInTextError(InvalidInputError):
    """A text that would be kept and shown holds a secret; nothing was stored. ``details.field`` says where."""

    code = "secret_in_text"


class WebhookUrlError(InvalidInputError):
    """A `webhook_url` that nothing may be sent to. ``details.reason`` says by which rule."""

    code = "webhook_url_refused"


class WebhookSecretError(InvalidInputError):
    """A webhook was asked for that there is no way to sign, or to hand over the secret of."""

    code = "webhook_secret_unavailable"


# --- Flowise -----------------------------------------------------------------------------------------------------


class FlowiseError(AgentError):
    """A call to a Flowise server did not do what was asked. The message quotes Flowise's own words."""

    code = "flowise_error"


class FlowiseUnreachableError(FlowiseError):
    """Connection refused, name not found, TLS failure: nothing was sent."""

    code = "flowise_unreachable"
    transient = True


class FlowiseTimeoutError(FlowiseError):
    """No answer in time. For a write this is ambiguous: it may have happened."""

    code = "flowise_timeout"
    transient = True


class FlowiseConnectionLostError(FlowiseError):
    """The connection broke after the request was sent. For a write this is ambiguous: it may have happened."""

    code = "flowise_connection_lost"
    transient = True


class FlowiseAuthError(FlowiseError):
    """401 or 403: the API key is wrong or lacks a permission."""

    code = "flowise_auth"


class FlowiseNotFoundError(FlowiseError):
    """404, or a 500 by which Flowise says that something does not exist."""

    code = "flowise_not_found"


class FlowiseRejectedError(FlowiseError):
    """Any other 4xx: Flowise refused the request as sent."""

    code = "flowise_rejected"


class FlowiseRateLimitedError(FlowiseError):
    """429."""

    code = "flowise_rate_limited"
    transient = True


class FlowiseServerError(FlowiseError):
    """5xx. Flowise answers 500 to almost every mistake, so this is not transient by itself."""

    code = "flowise_server_error"


class FlowiseUnexpectedResponseError(FlowiseError):
    """200 with HTML (unknown path), an empty body, or JSON of another shape."""

    code = "flowise_unexpected_response"


# --- Patch and write path ----------------------------------------------------------------------------------------


class PatchError(AgentError):
    """Ops that cannot be parsed or compiled. ``findings`` says which op, what was found and what is allowed."""

    code = "patch_error"


class ValidationRequiredError(AgentError):
    """A write without a validation of these very bytes in this iteration."""

    code = "validation_required"


class HashMismatchError(AgentError):
    """A write of bytes other than those that passed validation."""

    code = "hash_mismatch"


class WriteFailedError(AgentError):
    """Flowise did not take the flow, or what it holds differs from what was sent."""

    code = "write_failed"


class StaleBaseError(WriteFailedError):
    """The flow on Flowise is no longer the one that the change was made for; nothing was written."""

    code = "stale_base"


# --- Reasoning ---------------------------------------------------------------------------------------------------


class ReasoningError(AgentError):
    """The reasoning phase gave no usable result."""

    code = "reasoning_failed"


class ModelUnavailableError(ReasoningError):
    """The provider cannot be reached, is overloaded, limits the rate or timed out; its SDK has retried already."""

    code = "model_unavailable"
    transient = True


class ModelAuthError(ReasoningError):
    """The provider refuses the key or the model name."""

    code = "model_auth"


class BudgetSpentError(ReasoningError):
    """The session may spend no more on model calls; ``details`` has the ``usage`` of the phase so far."""

    code = "budget_spent"


class ModelOutputError(ReasoningError):
    """The model answered, but not in the shape that was asked for."""

    code = "model_output"


class ModelRefusedError(ModelOutputError):
    """The model, or a filter of its provider, declined to answer."""

    code = "model_refused"


class ModelContextError(ModelOutputError):
    """The prompt is longer than what the model reads at once."""

    code = "model_context"


# --- Sessions ----------------------------------------------------------------------------------------------------


class SessionNotFoundError(AgentError):
    """No session has this id."""

    code = "session_not_found"


class ScopeMissingError(AgentError):
    """The caller's key does not allow this. ``details`` has the scopes that do (`needs`) and those of the key."""

    code = "scope_missing"


class ApprovalNeededError(AgentError):
    """The settings ask for another person, or for two; nothing was written."""

    code = "approval_needed"


class SignInFailedError(AgentError):
    """The person is not signed in: the provider refused, or what came back is not to be trusted."""

    code = "sign_in_failed"


class SignInUnavailableError(AgentError):
    """The OpenID Connect provider does not answer as the standard says; keys of the service still work."""

    code = "sign_in_unavailable"
    transient = True


class KeyNotFoundError(AgentError):
    """No key has this id."""

    code = "key_not_found"


class OwnerNotFoundError(AgentError):
    """No owner has this id."""

    code = "owner_not_found"


class KeyConflictError(AgentError):
    """The key is revoked, or its name is that of another key in use; nothing was changed."""

    code = "key_conflict"


class ConnectionNotStorableError(AgentError):
    """A connection that the environment sets, or a service that may keep no keys; nothing was changed."""

    code = "connection_not_storable"


class ShareNotFoundError(AgentError):
    """No link of this owner has this id."""

    code = "share_not_found"


class ShareEndedError(AgentError):
    """A link that this service made, and that opens nothing any more."""

    code = "share_ended"


class ShareNotSignableError(AgentError):
    """A service without a key to sign links with; nothing was made."""

    code = "share_not_signable"


class CertificateNotSignableError(AgentError):
    """A service without a key to sign certificates with."""

    code = "certificate_not_signable"


class GuardNotFoundError(AgentError):
    """A flow that is not guarded."""

    code = "guard_not_found"


class NoCertificateError(AgentError):
    """A session in which no tested version was accepted, or whose tests are not kept."""

    code = "no_certificate"


class SessionsOpenError(AgentError):
    """Sessions go on with a Flowise server that a request would replace by another one; nothing was changed."""

    code = "sessions_open"


class ServerChangedError(AgentError):
    """The instance of a session is another Flowise server by now; nothing was read or written there."""

    code = "server_changed"


class ConnectionUnreadableError(AgentError):
    """The connection made at the page was encrypted with a key that is no longer one of `SECRETS_KEY`: nothing else is
    used in its place."""

    code = "connection_unreadable"


class DeliveryNotFoundError(AgentError):
    """The session has no webhook delivery with this id."""

    code = "delivery_not_found"


class AttachmentNotFoundError(AgentError):
    """No attachment has this id; one that no session used may have expired."""

    code = "attachment_not_found"


class ArtifactNotFoundError(AgentError):
    """No artifact has this id here; it may have gone by its age or with its session."""

    code = "artifact_not_found"


class NoPlanError(AgentError):
    """A session has no plan that could be shown as a design."""

    code = "design_not_found"


class NotAFlowError(InvalidInputError):
    """A text that should be a flow and is none: not JSON, or without nodes and edges."""

    code = "not_a_flow"


class FlowTestNotFoundError(AgentError):
    """There is no test of a flow with this id, or of a session with this number."""

    code = "flow_test_not_found"


class TraceNotFoundError(AgentError):
    """The session has no trace with this hash."""

    code = "trace_not_found"


class PatternNotFoundError(AgentError):
    """No pattern of this owner has this id."""

    code = "pattern_not_found"


class MemoryNotFoundError(AgentError):
    """No note of this owner has this id."""

    code = "memory_not_found"


class SessionExistsError(AgentError):
    """A session with this id exists already; nothing was changed."""

    code = "session_exists"


class SessionConflictError(AgentError):
    """The session is not in the state that the request needs (answered meanwhile, completed, running)."""

    code = "session_conflict"


class PreconditionFailedError(AgentError):
    """The resource is no longer in the state that the request's `If-Match` names. `details.etag` is the new
    one's."""

    code = "precondition_failed"


class IdempotencyKeyReusedError(SessionConflictError):
    """An Idempotency-Key came with another request before."""

    code = "idempotency_key_reused"


class RequestInProgressError(SessionConflictError):
    """The first request with an Idempotency-Key has not ended yet."""

    code = "request_in_progress"


class AnswerNotKeptError(SessionConflictError):
    """A request was carried out before, and its answer held a secret."""

    code = "answer_not_kept"


class CheckpointVersionError(AgentError):
    """A checkpoint was written by a newer version of the service."""

    code = "checkpoint_version"


class LeaseLostError(AgentError):
    """Another worker owns this run now. Ends the run silently; never shown to a person."""

    code = "lease_lost"


class DatabaseUnavailableError(AgentError):
    """Postgres does not answer; everything recovers by itself once it does."""

    code = "database_unavailable"
    transient = True
