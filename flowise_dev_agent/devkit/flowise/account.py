"""Bootstrap of a fresh Flowise: an account, an API key, and credentials for the stand-in."""

import json
import os
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from pydantic import SecretStr

from flowise_dev_agent.errors import ConfigurationError

#: Permissions that the agent needs, and more for tests (creating tools, variables, document stores).
PERMISSIONS = (
    *(f"chatflows:{action}" for action in ("view", "create", "update", "delete", "config")),
    *(f"agentflows:{action}" for action in ("view", "create", "update", "delete", "config")),
    *(f"credentials:{action}" for action in ("view", "create", "update", "delete")),
    *(f"tools:{action}" for action in ("view", "create", "update", "delete")),
    *(f"variables:{action}" for action in ("view", "create", "update", "delete")),
    *(f"documentStores:{action}" for action in ("view", "create", "update", "delete")),
    *(f"documentStores:{action}" for action in ("add-loader", "delete-loader", "preview-process", "upsert-config")),
    *(f"assistants:{action}" for action in ("view", "create", "update", "delete")),
    *(f"executions:{action}" for action in ("view", "update", "delete")),
    "templates:marketplace",
)

#: Credential type -> its secret field. The values are placeholders: the model providers behind them are the stand-in.
DUMMY_CREDENTIALS = {
    "openAIApi": "openAIApiKey",
    "anthropicApi": "anthropicApiKey",
    "groqApi": "groqApiKey",
    "serpApi": "serpApiKey",
    "braveSearchApi": "braveApiKey",
    "tavilyApi": "tavilyApiKey",
    "googleGenerativeAI": "googleGenerativeAPIKey",
    "huggingFaceApi": "huggingFaceApiKey",
    "cohereApi": "cohereApiKey",
    "pineconeApi": "pineconeApiKey",
}
_CREDENTIAL_NAMESPACE = uuid.UUID("5a0f8a4e-6a0c-4f3f-9d5b-0c8f0f5d7a11")
_EMAIL = "devkit@flowise-dev-agent.example"
_TIMEOUT_SECS = 30.0


@dataclass(frozen=True)
class FlowiseAccess:
    """Access data of a bootstrapped Flowise. `credentials` maps credential type to credential id."""

    endpoint: str
    api_key: SecretStr
    email: str
    password: SecretStr
    credentials: dict[str, str] = field(default_factory=dict)


def credential_id(credential_type: str) -> str:
    """The fixed id of the dummy credential of this type; creating the credential twice overwrites it."""
    return str(uuid.uuid5(_CREDENTIAL_NAMESPACE, credential_type))


def bootstrap(endpoint: str, access_file: Path) -> FlowiseAccess:
    """Create an account, an API key and the dummy credentials in the Flowise at `endpoint`. Idempotent.

    What was made is kept in `access_file` (mode 0600) and used again as long as the key works.

    Raises:
        ConfigurationError: Flowise refuses one of the steps, e.g. it has an account that `access_file` does not know.
    """
    saved = _read(access_file)
    with httpx2.Client(base_url=f"{endpoint}/api/v1", timeout=_TIMEOUT_SECS, trust_env=False) as http:
        try:
            key = saved.get("api_key")
            if not key or not _key_works(http, key):
                # Saved before use: a run that dies after the registration can still log in next time.
                saved = {"email": _EMAIL, "password": saved.get("password") or _new_password()}
                _write(access_file, saved)
                key = create_key(http, saved["email"], saved["password"])
                saved["api_key"] = key
                _write(access_file, saved)
            credentials = _ensure_credentials(http, key)
        except httpx2.HTTPError as error:
            raise ConfigurationError(f"The local Flowise at {endpoint} does not answer: {error}.") from error
    return FlowiseAccess(
        endpoint=endpoint,
        api_key=SecretStr(key),
        email=saved["email"],
        password=SecretStr(saved["password"]),
        credentials=credentials,
    )


def _key_works(http: httpx2.Client, key: str) -> bool:
    return http.get("/credentials", headers=_bearer(key)).is_success


def create_key(http: httpx2.Client, email: str, password: str, permissions: Sequence[str] = PERMISSIONS) -> str:
    """Log in, registering first if there is no account yet, and create an API key; returns the key."""
    internal = {"x-request-from": "internal"}
    login = {"email": email, "password": password}
    response = http.post("/auth/login", json=login, headers=internal)
    if not response.is_success:
        account = {"user": {"name": "devkit", "email": email, "credential": password}}
        _expect(http.post("/account/register", json=account), "create the account")
        response = http.post("/auth/login", json=login, headers=internal)
    _expect(response, "log in")
    # The login cookie authorises the next call; only a person's session may create keys.
    # The response lists every key, so the new one gets a unique name.
    name = f"flowise-dev-agent {secrets.token_hex(4)}"
    request = {"keyName": name, "permissions": list(permissions)}
    keys = _expect(http.post("/apikey", json=request, headers=internal), "create an API key")
    http.cookies.clear()
    return str(next(key["apiKey"] for key in keys if key["keyName"] == name))


def _ensure_credentials(http: httpx2.Client, key: str) -> dict[str, str]:
    rows = _expect(http.get("/credentials", headers=_bearer(key)), "list the credentials")
    present = {row["id"] for row in rows}
    wanted = {name: credential_id(name) for name in DUMMY_CREDENTIALS}
    for name, identity in wanted.items():
        if identity not in present:
            body = {
                "id": identity,
                "name": f"stand-in {name}",
                "credentialName": name,
                "plainDataObj": {DUMMY_CREDENTIALS[name]: "stand-in"},
            }
            _expect(http.post("/credentials", json=body, headers=_bearer(key)), f"create the credential {name}")
    return wanted


def _expect(response: httpx2.Response, step: str) -> Any:
    if response.is_success and "json" in response.headers.get("content-type", ""):
        return response.json()
    raise ConfigurationError(
        f"The local Flowise refused to {step} (HTTP {response.status_code}: {response.text[:200]}).",
        hint="Remove the devkit's data folder to start again, or set FLOWISE_API_ENDPOINT and FLOWISE_API_KEY.",
    )


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _new_password() -> str:
    # Flowise asks for a lower-case and an upper-case letter, a digit and another character.
    return f"Aa1!{secrets.token_urlsafe(24)}"


def _read(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, content: dict[str, str]) -> None:
    temporary = path.with_suffix(".tmp")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file)
    temporary.replace(path)
