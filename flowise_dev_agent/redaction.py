"""The one redactor: finds secrets in text and JSON, by form and by name, and masks them.

Three degrees of certainty. A *known form* (a provider's key, a token, a private key, a password in an address) is a
secret wherever it occurs: text of people that has one is refused. A *name* (`apiKey`, `Authorization`) makes a secret
of its value. A *random* text without either may be one. Whatever is kept or shown has all three masked.

All expressions have bounded repetitions or exclusive character classes, so that time grows linearly with the text.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

MASK: Final = "[secret]"
CONTACT_MASK: Final = "[contact]"

#: Forms of secrets, by what each of their texts has (one of several): looking for that is many times faster.
_FORMS: Final[Mapping[str, str]] = {
    "sk-": r"\bc?sk-[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic, OpenRouter, LangFuse, Cerebras
    "sk_ rk_": r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|\bsk_[0-9a-f]{48}\b",  # Stripe, ElevenLabs
    "fda_": r"\bfda_[A-Za-z0-9_-]{43}",  # keys of this service
    "gsk_ hf_ xai- pcsk_": r"\b(?:gsk_|hf_|xai-)[A-Za-z0-9]{20,}|\bpcsk_[A-Za-z0-9_]{20,}",
    "r8_ tvly- lsv2_": r"\br8_[A-Za-z0-9]{30,}|\btvly-[A-Za-z0-9-]{20,}|\blsv2_[A-Za-z0-9_]{30,}",
    "ntn_ secret_": r"\bntn_[A-Za-z0-9]{40,}|\bsecret_[A-Za-z0-9]{43}\b",  # Notion
    "nvapi- pplx- jina_": r"\b(?:nvapi-|pplx-|jina_)[A-Za-z0-9_-]{40,}",
    "fc- sbp_ dapi": r"\bfc-[0-9a-f]{32}\b|\bsbp_[0-9a-f]{40}\b|\bdapi[0-9a-f]{32}",
    "AKIA ASIA": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "AIza ya29. GOCSPX- 1//0": r"\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{28}"
    r"|(?<![\w/])1//0[0-9A-Za-z_-]{40,}",
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_": r"\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{22,}",
    "glpat- npm_ pypi-AgE": r"\bglpat-[A-Za-z0-9_-]{20,}|\bnpm_[A-Za-z0-9]{36}|\bpypi-AgE[A-Za-z0-9_-]{40,}",
    "dckr_pat_ rubygems_": r"\bdckr_pat_[A-Za-z0-9_-]{27}|\brubygems_[0-9a-f]{48}\b",
    "xox xapp-": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{20,}",  # Slack
    "hooks.slack.com/": r"\bhooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}",
    "/api/webhooks/": r"\bdiscord(?:app)?\.com/api/webhooks/[0-9]{5,20}/[A-Za-z0-9_-]{20,}",
    "whsec_ SG.": r"\bwhsec_[A-Za-z0-9+/=]{24,}|\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
    "SK key- shp": r"\bSK[0-9a-f]{32}\b|\bkey-[0-9a-f]{32}\b|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "pat- pat": r"\bpat-(?:na|eu)[0-9]-[0-9a-f]{8}-[0-9a-f-]{27}|\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b",  # Airtable
    "PMAK- NRAK- HRKU-": r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}|\bNRAK-[A-Z0-9]{27}\b|\bHRKU-[0-9A-Za-z_-]{36,}",
    "dop_v1_ glsa_ sntrys_": r"\bdop_v1_[0-9a-f]{64}|\bglsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|\bsntrys_[A-Za-z0-9+/=_]{40,}",
    "figd_ lin_api_ ATATT3": r"\bfigd_[A-Za-z0-9_-]{40}|\blin_api_[A-Za-z0-9]{40}|\bATATT3[A-Za-z0-9_=-]{50,200}",
    "apify_api_ nfp_ rnd_": r"\bapify_api_[A-Za-z0-9]{34,}|\bnfp_[A-Za-z0-9]{36,}|\brnd_[A-Za-z0-9]{28,}",
    "pscale_ dp. hvs. hvb.": r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}|\bdp\.[a-z]{2,5}\.[A-Za-z0-9]{40,}"
    r"|\bhv[sb]\.[A-Za-z0-9_-]{60,}",
    ".atlasv1. tskey-": r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}|\btskey-[a-z]{2,9}-[A-Za-z0-9-]{20,}",
    "sq0 EAACEdEose0cBA sl.": r"\bsq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|\bEAACEdEose0cBA[A-Za-z0-9]{20,}"
    r"|\bsl\.[A-Za-z0-9_-]{100,}",
    "access- FLWSECK": r"\baccess-(?:production|sandbox|development)-[0-9a-f]{8}-[0-9a-f-]{27}"
    r"|\bFLWSECK(?:_TEST)?-[0-9a-zA-Z-]{20,}",
    "dt0 AGE-SECRET-KEY-1 CFPAT-": r"\bdt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}|\bAGE-SECRET-KEY-1[A-Z0-9]{58}"
    r"|\bCFPAT-[A-Za-z0-9_-]{43}",
    "-us": r"\b[0-9a-f]{32}-us[0-9]{1,2}\b",  # Mailchimp
    ":fx": r"\b[0-9a-f]{8}-[0-9a-f-]{27}:fx\b",  # DeepL
    "pk_": r"\bpk_[0-9]{6,10}_[A-Z0-9]{32}\b",  # ClickUp
    "8Q~": r"\b[A-Za-z0-9_-]{3}8Q~[A-Za-z0-9_.~-]{31,34}",  # Azure client secret
    ":AA": r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",  # Telegram
    "eyJ": r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{10,}",  # JWT
    "Key= sig=": r"\b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{20,}={0,2}|[?&]sig=[A-Za-z0-9%+/=]{20,}",  # Azure
    "Bearer": r"\bBearer[ \t]{1,5}[A-Za-z0-9._~+/-]{20,}=*",
    "Basic": r"\bBasic[ \t]{1,5}(?=[A-Za-z+/]{0,40}[0-9=])[A-Za-z0-9+/]{12,}=*",
    "-----BEGIN": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]{0,8000}-----END [A-Z ]{0,30}PRIVATE KEY-----)?",
    "://": r"(?<=://)[^\s/@:\"'<>{}]{0,100}:[^\s/@\"'<>{}$]{1,200}(?=@)",  # a password in an address
}
_KNOWN: Final = re.compile("|".join(_FORMS.values()))
_CLUES: Final = tuple(dict.fromkeys(clue for clues in _FORMS for clue in clues.split()))
#: Characters of the shortest form, which is a password in an address.
_SHORTEST: Final = 4
#: Characters of the shortest form without a punctuation mark.
_SHORTEST_WORD: Final = 20

_SECRET_NAME: Final = re.compile(
    r"(api_?key|secret|secret_?key|access_?key|private_?key|account_?key|password|passwd|pwd|passphrase"
    r"|passwort|kennwort|contraseña|mot_de_passe|connection_?string"
    r"|(access|auth|bearer|api|secret|refresh|session|bot|personal)_?token|authorization|subscription_?key)$"
    r"|^(x_.{0,40}_key|(set_)?cookie)$",
    re.IGNORECASE,
)
#: A text in place of a secret: nothing, `<your token>`, `YOUR_API_TOKEN`, `${API_TOKEN}`, `user:PASSWORD`, with or
#: without a scheme.
_NO_SECRET: Final = re.compile(
    r"(?:(?:bearer|basic|token)\b[ \t]{0,5}|[^\s:]{0,100}:|sk-)?"
    r"(?:|<[^<>]{1,60}>|\[[A-Za-z _-]{1,60}\]|\$\{?[A-Za-z_][A-Za-z0-9_]{0,60}\}?"
    r"|your[ _-][a-z _-]{1,60}|\*{1,60}|[x.]{3,60}"
    # In small letters a passphrase may have these words, too.
    r"|(?-i:(?:[A-Z]{1,20}[ _-]){0,5}(?:PASSWORD|PASSWD|PASSWORT|PASSE?|PWD|SECRET|TOKEN|KEY|KENNWORT|CONTRASE[ÑN]A"
    r"|CLAVE|SENHA)(?:[ _-][A-Z]{1,20}){0,5})"
    r"|(?:(?:my|the|api|access|secret|client|db|user)[ _-]){0,3}(?:password|passwd|passwort|pass|pwd|secret|token|key)"
    r"(?:[ _-]here)?)",
    re.IGNORECASE,
)
#: `name: value` and `name=value` in a text, where the value can be a secret.
_ASSIGNED: Final = re.compile(
    r"\b((?:[a-z]{1,20}[-_]){0,3}(?:api[-_]?key|secret|token|password|passwd|pwd|passphrase|passwort|kennwort"
    r"|contrase(?:[nñ]|\\{1,8}u00f1)a|mot de passe|authorization|access[-_]?key)"
    r"[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?:[a-z]{3,10}[ \t])?)((?=[^\s\"',;&<>{}]{0,40}[0-9])[^\s\"',;&<>{}]{8,200})",
    re.IGNORECASE,
)
#: An e-mail address, or a telephone number with the code of its country.
_CONTACT: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,6}|(?<!\w)\+[1-9][0-9 ()/.-]{6,18}[0-9]"
)
_SHORTEST_RANDOM: Final = 24
#: Addresses are full of ids that are no secrets.
_WORD: Final = re.compile(r"\S{24,}")
_RANDOM: Final = re.compile(r"[A-Za-z0-9_+=/-]{24,}")
#: A key of hexadecimal digits: 32 of them, or more with the name of their maker before them, which no hash has.
_HEX_KEY: Final = re.compile(
    r"(?=[0-9]{0,31}[a-f])(?=[a-f]{0,31}[0-9])[0-9a-f]{32}|(?!sha|md5)[a-z]{2,12}[_-][0-9a-f]{32,64}"
)
#: Of the characters of a random text more than this share are of another kind than the one before.
_CHANGES: Final = 0.4
_ID_NAME: Final = re.compile(r"(?:^|_)ids?$|I[dD]s?$")
_BLANK: Final = re.compile(r"\s")
_DEEPEST: Final = 100
#: Characters of texts that are kept with what is left of them: too few for nesting of that depth.
_SHORT: Final = 100


def holds_secret(value: Any) -> bool:
    """True when a known form occurs anywhere in a text, list or object."""
    if isinstance(value, str):
        return _may_hold(value) and not all(_stands_for_one(match[0]) for match in _KNOWN.finditer(value))
    if isinstance(value, Mapping):
        return any(holds_secret(item) for item in value.values())
    if isinstance(value, list):
        return any(holds_secret(item) for item in value)
    return False


@lru_cache(maxsize=4096)
def named_secret(name: str) -> bool:
    """True for names such as `openAIApiKey` and `X-Api-Key`; `maxTokens` is none."""
    return _SECRET_NAME.search(name[-80:].replace("-", "_")) is not None


def looks_secret(name: str, value: Any) -> bool:
    """True for a value that has a known form, or a name that only secrets have.

    A reference to a Flowise variable (`{{$vars.key}}`) is the right way to do it and no secret, nor is a text that
    stands for one (`Bearer <your token>`).
    """
    if holds_secret(value):
        return True
    return isinstance(value, str) and not _is_reference(value) and named_secret(name) and not _stands_for_one(value)


def masked(text: str) -> str:
    """`text` with every secret masked: known forms, values after a secret's name, random texts. For all that is kept,
    shown, or sent to a model.
    """
    text = _without_known(text)
    if "=" in text or ":" in text:
        text = _ASSIGNED.sub(lambda match: match[0] if _is_reference(match[2]) else match[1] + MASK, text)
    if len(text) < _SHORTEST_RANDOM:
        return text
    return _WORD.sub(lambda word: word[0] if "://" in word[0] else _RANDOM.sub(_masked_random, word[0]), text)


def _without_known(text: str) -> str:
    return _KNOWN.sub(_masked_form, text) if _may_hold(text) else text


def without_contacts(value: Any) -> Any:
    """A copy of JSON with e-mail addresses, and telephone numbers that begin with `+`, masked in every text."""
    if isinstance(value, str):
        return _CONTACT.sub(CONTACT_MASK, value) if "@" in value or "+" in value else value
    if isinstance(value, Mapping):
        return {key: without_contacts(item) for key, item in value.items()}
    return [without_contacts(item) for item in value] if isinstance(value, list) else value


def named_items(value: Mapping[Any, Any]) -> Iterator[tuple[str, str, Any]]:
    """Keys of an object with the name and the value of each; in a row `{key, value}` the key names the value."""
    row = value.get("key") if "value" in value else None
    for key, item in value.items():
        yield str(key), row if isinstance(row, str) and key == "value" else str(key), item


def redacted(value: Any) -> Any:
    """A copy of JSON in which every text is `masked` and every value under a secret's name is MASK.

    Rows `{key, value}` (headers) and JSON inside texts are read as well. Keys, and one word under the name of an id,
    lose known forms only: ids are random, too.
    """
    return _redacted("", value, 0)


def _redacted(name: str, value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return MASK
    # By exact type first: nearly all values are of these, and to ask for a mapping takes long.
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is float:
        return value
    if kind is dict and ("value" not in value or "key" not in value):
        return {_masked_name(str(key)): _redacted(str(key), item, depth + 1) for key, item in value.items()}
    if kind is str and len(value) <= _SHORT:
        return _redacted_short(name, value)
    if isinstance(value, str):
        return _redacted_text(name, value, depth)
    if isinstance(value, Mapping):
        return {_masked_name(key): _redacted(name, item, depth + 1) for key, name, item in named_items(value)}
    if isinstance(value, (list, tuple)):
        return [_redacted(name, item, depth + 1) for item in value]
    return value


def _redacted_text(name: str, value: str, depth: int) -> str:
    if named_secret(name) and value.strip() and not _is_reference(value):
        return MASK
    if value[:1] in {"{", "["} and (inner := _json(value)) is not None:
        clean = _redacted(name, inner, depth + 1)
        return value if clean == inner else json.dumps(clean, ensure_ascii=False)
    return _without_known(value) if _ID_NAME.search(name) and not _BLANK.search(value) else masked(value)


@lru_cache(maxsize=4096)
def _redacted_short(name: str, value: str) -> str:
    # Codes, names of nodes and what leads from one to the next are in the events of every session.
    return _redacted_text(name, value, 0)


@lru_cache(maxsize=4096)
def _masked_name(name: str) -> str:
    return _without_known(name)


def _may_hold(text: str) -> bool:
    # Most texts are names: they are looked at for each event.
    if len(text) < _SHORTEST_WORD and (len(text) < _SHORTEST or text.isidentifier()):
        return False
    for clue in _CLUES:  # noqa: SIM110 - half the time of any()
        if clue in text:
            return True
    return False


def _is_reference(text: str) -> bool:
    return "{{" in text and "}}" in text


def _stands_for_one(text: str) -> bool:
    return _NO_SECRET.fullmatch(text.strip()) is not None


def _masked_form(match: re.Match[str]) -> str:
    return match[0] if _stands_for_one(match[0]) else MASK


def _masked_random(match: re.Match[str]) -> str:
    return MASK if _is_random(match[0]) else match[0]


def _is_random(word: str) -> bool:
    """A text that no person and no naming convention makes: a 32-digit hexadecimal key, or letters of both cases and
    digits in constant change."""
    if _HEX_KEY.fullmatch(word):
        return True
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" if char.islower() else "" for char in word]
    changes = sum(one != other for one, other in pairwise(kinds))
    return {"d", "u", "l"} <= set(kinds) and changes > _CHANGES * len(word)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
