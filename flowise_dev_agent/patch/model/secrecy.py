"""Recognising secrets that were typed where Flowise would store and show them in clear."""

import re
from functools import lru_cache
from typing import Any

from flowise_dev_agent.patch.model.references import has_variable

_SECRET_NAME = re.compile(
    r"(api_?key|secret|secret_?key|access_?key|private_?key|password|passwd"
    r"|(access|auth|bearer|api|secret|refresh|session|bot|personal)_?token)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"\bsk-[A-Za-z0-9_-]{20,}"  # OpenAI, Anthropic, OpenRouter
    r"|\bgsk_[A-Za-z0-9]{20,}|\bhf_[A-Za-z0-9]{20,}|\bxai-[A-Za-z0-9]{20,}|\bpcsk_[A-Za-z0-9_]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}"  # AWS, Google
    r"|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{22,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|\bBearer\s+[A-Za-z0-9._~+/-]{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
#: Every secret value begins with one of these: looking for them is many times faster than for the forms.
_BEGINNINGS = (
    *("sk-", "gsk_", "hf_", "xai-", "pcsk_", "AKIA", "AIza", "github_pat_", "Bearer", "-----BEGIN "),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "xox"),
)
#: Characters of the shortest one.
_SHORTEST = 15


def looks_secret(name: str, value: Any) -> bool:
    """True for a value that is a key by its form, or that has a name that only secrets have.

    A reference to a Flowise variable (``{{$vars.key}}``) is the right way to do it and no secret.
    """
    if holds_secret(value):
        return True
    return isinstance(value, str) and bool(value.strip()) and not has_variable(value) and named_secret(name)


@lru_cache(maxsize=4096)
def named_secret(name: str) -> bool:
    """True for names such as ``openAIApiKey``; ``maxTokens`` is none."""
    return _SECRET_NAME.search(name) is not None


def holds_secret(value: Any) -> bool:
    """True when a known key format occurs anywhere in a text, list or object."""
    if isinstance(value, str):
        if len(value) >= _SHORTEST:
            for beginning in _BEGINNINGS:
                if beginning in value:
                    return _SECRET_VALUE.search(value) is not None
        return False
    if isinstance(value, dict):
        return any(holds_secret(item) for item in value.values())
    if isinstance(value, list):
        return any(holds_secret(item) for item in value)
    return False


def masked(text: str) -> str:
    """`text` with every known key format replaced: what people paste need not be kept or shown to a model."""
    return _SECRET_VALUE.sub("[secret]", text)
