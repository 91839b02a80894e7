"""Settings from environment variables and `.env`, as frozen typed values.

Each group is a class of its own, so that a part of the program can take just what it needs; `Settings` holds all
groups. Secrets are `SecretStr`: they do not appear in reprs, logs or error texts.
"""

import base64
import binascii
import ipaddress
import json
import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import unquote

from dotenv import dotenv_values
from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic.networks import HttpUrl
from pydantic_settings import BaseSettings, SettingsConfigDict

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.settings.base import Group, data_folder, items
from flowise_dev_agent.settings.reasoning import (
    DEFAULT_MODELS,
    Effort,
    EngineName,
    Mode,
    Phase,
    ReasoningSettings,
    Route,
    Thinking,
)
from flowise_dev_agent.settings.sign_in import SignInSettings, check_service

__all__ = [
    "DEFAULT_MODELS",
    "DatabaseSettings",
    "DomainSettings",
    "DriftPolicy",
    "Effort",
    "EngineName",
    "FlowiseInstance",
    "FlowiseSettings",
    "LimitSettings",
    "Mode",
    "Network",
    "Phase",
    "ReasoningSettings",
    "RetentionSettings",
    "Route",
    "ServerSettings",
    "Settings",
    "SignInSettings",
    "Thinking",
    "TracingSettings",
    "data_folder",
    "load_settings",
    "unknown_settings",
]

RetentionMode = Literal["forever", "ttl", "max_count", "ttl_max_count"]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _are_headers(value: dict[str, SecretStr] | None) -> dict[str, SecretStr] | None:
    for name, secret in (value or {}).items():
        text = secret.get_secret_value()
        if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", name) or not re.fullmatch(r"[\x20-\x7e]{1,4000}", text):
            raise ValueError("headers must have names of letters, digits and hyphens, and values of one ASCII line.")
    return value


_Headers = Annotated[dict[str, SecretStr] | None, AfterValidator(_are_headers)]


class FlowiseInstance(BaseSettings):
    """One Flowise server of `FLOWISE_INSTANCES`."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    endpoint: HttpUrl
    api_key: SecretStr | None = None
    #: Sent with each request, for a proxy in front of it.
    headers: _Headers = None
    #: Where the same server was before: what began there goes on.
    formerly: tuple[HttpUrl, ...] = ()


#: What to do when a server's node types change during a session.
DriftPolicy = Literal["warn", "fail", "refresh"]


class FlowiseSettings(Group):
    """The Flowise instances, timeouts and caches."""

    api_endpoint: HttpUrl = Field(default=HttpUrl("http://localhost:3000"), alias="FLOWISE_API_ENDPOINT")
    api_key: SecretStr | None = Field(default=None, alias="FLOWISE_API_KEY")
    #: Where the same server was before: what began there goes on.
    former_endpoint: HttpUrl | None = Field(default=None, alias="FLOWISE_FORMER_ENDPOINT")
    timeout_secs: float = Field(default=15, gt=0, alias="FLOWISE_TIMEOUT")
    connect_timeout_secs: float = Field(default=5, gt=0, alias="FLOWISE_CONNECT_TIMEOUT")
    prediction_timeout_secs: float = Field(default=60, gt=0, alias="FLOWISE_PREDICTION_TIMEOUT")
    #: How long a run waits for a server that is away.
    outage_hours: float = Field(default=24, ge=0, alias="FLOWISE_OUTAGE_HOURS")
    #: How often each server is looked at for changes that people make in Flowise; 0: never.
    watch_secs: float = Field(default=60, ge=0, alias="FLOWISE_WATCH_SECS")
    headers: _Headers = Field(default=None, alias="FLOWISE_HEADERS")
    instances_json: str | None = Field(default=None, alias="FLOWISE_INSTANCES")
    discover_cache_ttl_secs: float = Field(default=300, ge=0, alias="DISCOVER_CACHE_TTL_SECS")
    template_snapshot_ttl_secs: float = Field(default=86_400, ge=0, alias="TEMPLATE_SNAPSHOT_TTL_SECONDS")
    credential_snapshot_ttl_secs: float = Field(default=3_600, ge=0, alias="CREDENTIAL_SNAPSHOT_TTL_SECONDS")
    schema_drift_policy: DriftPolicy = Field(default="warn", alias="FLOWISE_SCHEMA_DRIFT_POLICY")
    model_stand_in: bool = Field(default=False, alias="FLOWISE_MODEL_STAND_IN")

    @field_validator("instances_json")
    @classmethod
    def _is_a_list_of_instances(cls, value: str | None) -> str | None:
        if value is not None:
            _parse_instances(value)
        return value

    @cached_property
    def instances(self) -> tuple[FlowiseInstance, ...]:
        """All instances, the default one first. Without `FLOWISE_INSTANCES` there is one, called `default`."""
        if self.instances_json is not None:
            return _parse_instances(self.instances_json)
        formerly = (self.former_endpoint,) if self.former_endpoint else ()
        default = FlowiseInstance(
            id="default", endpoint=self.api_endpoint, api_key=self.api_key, headers=self.headers, formerly=formerly
        )
        return (default,)


def _parse_instances(text: str) -> tuple[FlowiseInstance, ...]:
    shape = 'a JSON list such as [{"id": "dev", "endpoint": "http://localhost:3000", "api_key": "..."}]'
    try:
        raw: Any = json.loads(text)
    except ValueError:
        raise ValueError(f"FLOWISE_INSTANCES is not JSON. It must be {shape}.") from None
    if not isinstance(raw, list) or not raw or not all(isinstance(item, dict) for item in raw):
        raise ValueError(f"FLOWISE_INSTANCES must be {shape}.")
    instances = tuple(FlowiseInstance(**item) for item in raw)
    ids = [instance.id for instance in instances]
    if len(set(ids)) != len(ids):
        raise ValueError("FLOWISE_INSTANCES has the same id twice.")
    return instances


_CEILING_FACTOR = 4


class LimitSettings(Group):
    """Limits of one session. A model can only lower them."""

    max_iterations: int = Field(default=3, ge=1, alias="MAX_ITERATIONS")
    max_patch_ops_per_iter: int = Field(default=60, ge=1, alias="MAX_PATCH_OPS_PER_ITER")
    max_schema_repairs_per_iter: int = Field(default=10, ge=0, alias="MAX_SCHEMA_REPAIRS_PER_ITER")
    max_total_retries_per_iter: int = Field(default=3, ge=0, alias="MAX_TOTAL_RETRIES_PER_ITER")
    max_workflow_nodes: int = Field(default=50, ge=1, alias="MAX_WORKFLOW_NODES")
    session_tokens: int = Field(default=300_000, ge=1, alias="SESSION_BUDGET_TOKENS")
    session_usd: float = Field(default=5.0, gt=0, alias="SESSION_BUDGET_USD")
    #: What a client or an answer may raise the budget to; four times the budget when not set.
    tokens_ceiling: int | None = Field(default=None, ge=1, alias="SESSION_BUDGET_TOKENS_CEILING")
    usd_ceiling: float | None = Field(default=None, gt=0, alias="SESSION_BUDGET_USD_CEILING")
    skip_clarification: bool = Field(default=False, alias="SKIP_CLARIFICATION")
    run_attempts: int = Field(default=5, ge=1, alias="RUN_ATTEMPTS")

    @cached_property
    def ceilings(self) -> dict[str, float]:
        """The most `tokens` and `usd` that a session may have."""
        return {
            "tokens": self.tokens_ceiling or _CEILING_FACTOR * self.session_tokens,
            "usd": self.usd_ceiling or _CEILING_FACTOR * self.session_usd,
        }


class DatabaseSettings(Group):
    """Postgres."""

    dsn: SecretStr | None = Field(default=None, alias="POSTGRES_DSN")
    #: A direct connection for LISTEN, when `dsn` goes through pgbouncer; `dsn` when not set.
    direct_dsn: SecretStr | None = Field(default=None, alias="POSTGRES_DIRECT_DSN")
    pool_min_size: int = Field(default=2, ge=1, alias="POSTGRES_POOL_MIN_SIZE")
    pool_max_size: int = Field(default=10, ge=2, alias="POSTGRES_POOL_MAX_SIZE")
    connect_timeout_secs: float = Field(default=5, gt=0, alias="POSTGRES_CONNECT_TIMEOUT_SECS")
    #: Encrypts the keys that people give at the page. The first one encrypts, all of them decrypt.
    secrets_key: SecretStr | None = Field(default=None, alias="SECRETS_KEY")

    #: Ids of keys that signed certificates and may have leaked, separated by commas.
    certificate_keys_revoked: str = Field(default="", alias="CERTIFICATE_KEYS_REVOKED")

    @field_validator("secrets_key")
    @classmethod
    def _is_a_list_of_keys(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            _parse_secrets_keys(value.get_secret_value())
        return value

    @cached_property
    def secrets_keys(self) -> tuple[bytes, ...]:
        """The keys of `SECRETS_KEY`, 32 bytes each."""
        return _parse_secrets_keys(self.secrets_key.get_secret_value()) if self.secrets_key else ()


def _parse_secrets_keys(text: str) -> tuple[bytes, ...]:
    keys: list[bytes] = []
    for item in items(text):
        try:
            keys.append(base64.b64decode(item.replace("-", "+").replace("_", "/"), validate=True))
        except (binascii.Error, ValueError):
            keys.append(b"")
    if not all(len(key) == 32 for key in keys):
        raise ValueError(
            "SECRETS_KEY must be the base64 of 32 random bytes (several separated by commas);"
            " `openssl rand -base64 32` makes one."
        )
    return tuple(keys)


class RetentionSettings(Group):
    """Days, counted from a session's last change, after which its data is removed; 0 keeps it."""

    #: Whole sessions that have ended or failed.
    sessions_days: float = Field(default=400, ge=0, alias="RETENTION_SESSIONS_DAYS")
    #: Checkpoints of completed and cancelled sessions; nothing reads them any more.
    threads_days: float = Field(default=7, ge=0, alias="RETENTION_THREADS_DAYS")
    events_days: float = Field(default=90, ge=0, alias="RETENTION_EVENTS_DAYS")
    #: Stored texts (test answers, drafts), except those of flows that were found or written.
    artifacts_days: float = Field(default=90, ge=0, alias="RETENTION_ARTIFACTS_DAYS")
    #: Files that were handed over with a session that is completed or cancelled.
    attachments_days: float = Field(default=90, ge=0, alias="RETENTION_ATTACHMENTS_DAYS")
    #: Drafts that failed sessions left on Flowise; those of other sessions are removed within an hour.
    drafts_days: float = Field(default=7, ge=0, alias="RETENTION_DRAFTS_DAYS")
    #: Stored artifacts of steps: until the session is deleted, by age, by number (of a session and node), or both.
    mode_plan: RetentionMode = Field(default="forever", alias="RETENTION_MODE_PLAN")
    mode_memory: RetentionMode = Field(default="forever", alias="RETENTION_MODE_MEMORY")
    ttl_seconds: float = Field(default=3_600, gt=0, alias="RETENTION_TTL_SECONDS")
    max_count: int = Field(default=25, ge=1, alias="RETENTION_MAX_COUNT")

    @property
    def modes(self) -> dict[str, RetentionMode]:
        """Retention mode of the artifacts of each kind."""
        return {"plan": self.mode_plan, "memory": self.mode_memory}


class ServerSettings(Group):
    """The HTTP service and its worker."""

    api_key: SecretStr | None = Field(default=None, alias="AGENT_API_KEY")
    #: Opens /metrics and nothing else.
    metrics_key: SecretStr | None = Field(default=None, alias="AGENT_METRICS_KEY")
    host: str = Field(default="127.0.0.1", alias="AGENT_API_HOST")
    #: Proxies that may say where a request comes from, as uvicorn reads them.
    forwarded_allow_ips: str = Field(default="127.0.0.1", alias="FORWARDED_ALLOW_IPS")
    port: int = Field(default=8000, ge=0, le=65_535, alias="AGENT_API_PORT")
    rate_limit_sessions_per_min: int = Field(default=10, ge=0, alias="RATE_LIMIT_SESSIONS_PER_MIN")
    rate_limit_chat_per_min: int = Field(default=60, ge=0, alias="RATE_LIMIT_CHAT_PER_MIN")
    max_connections: int = Field(default=1_000, ge=10, alias="AGENT_MAX_CONNECTIONS")
    sse_keepalive_secs: float = Field(default=15, gt=0, alias="SSE_KEEPALIVE_SECS")
    wait_secs: float = Field(default=30, ge=0, le=300, alias="AGENT_WAIT_SECS")
    worker_concurrency: int = Field(default=100, ge=1, alias="AGENT_WORKER_CONCURRENCY")
    public_base_url: HttpUrl | None = Field(default=None, alias="PUBLIC_BASE_URL")
    webhook_secret: SecretStr | None = Field(default=None, alias="WEBHOOK_SECRET")
    webhook_allow: str = Field(default="", alias="WEBHOOK_ALLOW")
    #: Receiver of events about flows that people change in Flowise.
    flow_webhook_url: str | None = Field(default=None, max_length=2_000, alias="FLOW_WEBHOOK_URL")
    mcp_approval: Literal["person", "agent"] = Field(default="person", alias="MCP_APPROVAL")
    separate_approval: bool = Field(default=False, alias="SEPARATE_APPROVAL")
    two_approvals: str = Field(default="", alias="TWO_APPROVALS")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", alias="LOG_LEVEL")
    log_format: Literal["text", "json"] = Field(default="text", alias="LOG_FORMAT")

    @field_validator("webhook_secret")
    @classmethod
    def _is_a_list_of_secrets(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            for secret in items(value.get_secret_value()):
                _check_webhook_secret(secret)
        return value

    @field_validator("webhook_allow")
    @classmethod
    def _is_a_list_of_hosts_and_networks(cls, value: str) -> str:
        _parse_allowed(value)
        return value

    @cached_property
    def api_keys(self) -> tuple[SecretStr, ...]:
        """The keys of `AGENT_API_KEY`: each opens, and commands send the first."""
        return tuple(map(SecretStr, items(self.api_key.get_secret_value()))) if self.api_key else ()

    @cached_property
    def two_approval_flows(self) -> frozenset[str]:
        """Ids and names of `TWO_APPROVALS`, in lower case."""
        return frozenset(name.casefold() for name in items(self.two_approvals))

    @cached_property
    def webhook_secrets(self) -> tuple[str, ...]:
        """The secrets of `WEBHOOK_SECRET`, each `whsec_` and base64; a webhook is signed with all of them."""
        return items(self.webhook_secret.get_secret_value()) if self.webhook_secret else ()

    @cached_property
    def webhook_allowed(self) -> tuple[frozenset[str], tuple[Network, ...]]:
        """The host names (lower case) and networks of `WEBHOOK_ALLOW`."""
        return _parse_allowed(self.webhook_allow)


def _check_webhook_secret(secret: str) -> None:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    # The bounds of the Standard Webhooks specification.
    if not secret.startswith("whsec_") or not 24 <= len(key) <= 64:
        raise ValueError(
            "WEBHOOK_SECRET must be `whsec_` and the base64 of 24 to 64 random bytes (several separated by commas);"
            ' `echo "whsec_$(openssl rand -base64 32)"` makes one.'
        )


def _parse_allowed(text: str) -> tuple[frozenset[str], tuple[Network, ...]]:
    hosts: set[str] = set()
    networks: list[Network] = []
    for item in items(text):
        try:
            networks.append(ipaddress.ip_network(item, strict=False))
        except ValueError:
            host = item.lower().rstrip(".")
            if not re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", host) or host.replace(".", "").isdecimal():
                raise ValueError(
                    f"WEBHOOK_ALLOW has '{item}', which is neither a host name nor a network such as 10.0.0.0/8."
                ) from None
            hosts.add(host)
    return frozenset(hosts), tuple(networks)


class DomainSettings(Group):
    """Systems that the agent works with besides Flowise."""

    choice: str = Field(default="", alias="DOMAINS")
    #: Each domain has a folder in it for what its refresh brings.
    dir: Path | None = Field(default=None, alias="DOMAINS_DIR")

    @cached_property
    def folder(self) -> Path:
        """The folder in which domains keep what their refresh brings."""
        return self.dir or data_folder() / "domains"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The domains to use; all that are installed when empty. Flowise is always one of them."""
        return items(self.choice)


class TracingSettings(Group):
    """Traces: to LangSmith when a key is set and its switch is true, never by one of them alone; to a collector of
    OpenTelemetry when its address is set. The SDK reads further OTEL_* variables from the environment.
    """

    langchain_api_key: SecretStr | None = Field(default=None, alias="LANGCHAIN_API_KEY")
    langchain_tracing_v2: bool = Field(default=False, alias="LANGCHAIN_TRACING_V2")
    langsmith_api_key: SecretStr | None = Field(default=None, alias="LANGSMITH_API_KEY")
    langsmith_tracing: bool = Field(default=False, alias="LANGSMITH_TRACING")
    project: str = Field(default="flowise-dev-agent", alias="LANGCHAIN_PROJECT")
    endpoint: HttpUrl = Field(default=HttpUrl("https://api.smith.langchain.com"), alias="LANGCHAIN_ENDPOINT")
    otel_endpoint: HttpUrl | None = Field(default=None, alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    otel_headers: SecretStr | None = Field(default=None, alias="OTEL_EXPORTER_OTLP_HEADERS")
    otel_service_name: str = Field(default="flowise-dev-agent", alias="OTEL_SERVICE_NAME")
    otel_exporter: str = Field(default="otlp", alias="OTEL_TRACES_EXPORTER")
    otel_disabled: bool = Field(default=False, alias="OTEL_SDK_DISABLED")

    @cached_property
    def key(self) -> SecretStr | None:
        """The key to trace with; None when tracing is off."""
        if self.langsmith_tracing and self.langsmith_api_key:
            return self.langsmith_api_key
        return self.langchain_api_key if self.langchain_tracing_v2 else None

    @property
    def spans_endpoint(self) -> str | None:
        """The address that spans are sent to; None when none are sent."""
        if self.otel_endpoint is None or self.otel_exporter != "otlp" or self.otel_disabled:
            return None
        return f"{str(self.otel_endpoint).rstrip('/')}/v1/traces"

    @property
    def spans_headers(self) -> dict[str, str]:
        """The headers that spans are sent with."""
        named = self.otel_headers.get_secret_value() if self.otel_headers else ""
        pairs = (part.partition("=") for part in named.split(",") if "=" in part)
        return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


class Settings(Group):
    """All settings. Create it with `load_settings`, which turns mistakes into sentences instead of tracebacks."""

    reasoning: ReasoningSettings = Field(default_factory=ReasoningSettings)
    flowise: FlowiseSettings = Field(default_factory=FlowiseSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
    server: ServerSettings = Field(default_factory=ServerSettings)
    tracing: TracingSettings = Field(default_factory=TracingSettings)
    domain_settings: DomainSettings = Field(default_factory=DomainSettings)
    sign_in: SignInSettings = Field(default_factory=SignInSettings)

    @model_validator(mode="after")
    def _people_come_back_to_a_safe_address(self) -> Self:
        if self.sign_in.is_on:
            check_service(self.server.public_base_url, has_key=self.server.api_key is not None)
        return self


def load_settings(**groups: Any) -> Settings:
    """Read the environment and `.env`; `groups` (for example `database=DatabaseSettings(...)`) replace whole groups.

    Raises:
        ConfigurationError: names the variables that are wrong and what they must be, never their values.
    """
    try:
        return Settings(**groups)
    except ValidationError as error:
        raise ConfigurationError(
            "The settings cannot be used: " + "; ".join(_in_words(item) for item in error.errors(include_input=False)),
            hint="Correct the variable in the environment or in .env and start again.",
        ) from None


#: Variables that begin like this are meant for the service.
_OURS: Final = ("AGENT_", "FLOWISE_", "OIDC_", "RATE_LIMIT_", "REASONING_", "RETENTION_", "SESSION_", "WEBHOOK_")
_RENAMED: Final = {"LEG_ATTEMPTS": "RUN_ATTEMPTS"}


def unknown_settings(environment: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Variables of the environment and `.env` that look like settings and are none, each with what may be meant."""
    groups = (field.annotation for field in Settings.model_fields.values())
    known = {
        str(field.alias)
        for group in groups
        if isinstance(group, type) and issubclass(group, Group)
        for field in group.model_fields.values()
    }
    known |= {f"{name}_FILE" for name in known}
    given = (os.environ if environment is None else environment).keys() | dotenv_values(".env").keys()
    return {
        name: _RENAMED.get(name) or next(iter(get_close_matches(name, known, n=1, cutoff=0.8)), None)
        for name in sorted(given - known)
        if name.startswith(_OURS) or name in _RENAMED
    }


def _in_words(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"])
    text = str(item["msg"]).removeprefix("Value error, ")
    return f"{where}: {text}" if where else text
