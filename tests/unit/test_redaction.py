"""Secrets by their form, by their name and by chance; and what is none of them."""

import json
import re
from pathlib import Path

import pytest

import flowise_dev_agent
from flowise_dev_agent.redaction import MASK, holds_secret, looks_secret, masked, named_secret, redacted

_ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"
_HEX = "0d6a4c1f2b90e5d3a7b8c9d0e1f2a3b4"
_UUID = "0d6a4c1f-2b90-4d6a-8c1f-2b900d6a4c1f"
_CAPITALS = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
#: A known form of each kind, marked: the text that must not be found afterwards.
KNOWN = {
    "openai": f"sk-proj-{_ALNUM}",
    "groq": f"gsk_{_ALNUM}",
    "hugging face": f"hf_{_ALNUM}",
    "replicate": f"r8_{_ALNUM}",
    "tavily": f"tvly-dev-{_ALNUM}",
    "langsmith": f"lsv2_pt_{_ALNUM}",
    "pinecone": f"pcsk_{_ALNUM}",
    "aws": "AKIA" + "ABCD" * 4,
    "google": "AIza" + (_ALNUM + "abc"),
    "github": "ghp_" + (_ALNUM + "abcd"),
    "gitlab": f"glpat-{_ALNUM}",
    "npm": "npm_" + (_ALNUM + "abcd"),
    "slack": "xoxb-1234567890-abcdefghij",
    "slack webhook": "hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx",
    "discord webhook": f"discord.com/api/webhooks/123456789012345678/{_ALNUM}",
    "stripe": "sk_live_" + _ALNUM,
    "standard webhooks": "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0",
    "sendgrid": f"SG.{_ALNUM[:22]}.{_ALNUM}abc",
    "telegram": "123456789:AA" + (_ALNUM + "z"),
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{_ALNUM}",
    "azure storage": f"AccountKey={_ALNUM}{_ALNUM}==",
    "azure signature": f"?sig={_ALNUM}%3D",
    "bearer": f"Bearer {_ALNUM}",
    "basic": "Basic dXNlcjpwYXNzd29yZDE=",
    "key of this service": f"fda_{_ALNUM}abcdefghijk",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "twilio": "SK" + _HEX,
    "mailgun": "key-" + _HEX,
    "shopify": "shpat_" + _HEX,
    "hubspot": "pat-eu1-" + "0d6a4c1f-2b90-4d6a-8c1f-2b900d6a4c1f",
    "postman": f"PMAK-{_HEX[:24]}-{_HEX}ab",
    "perplexity": f"pplx-{_ALNUM}{_ALNUM[:16]}",
    "databricks": "dapi" + _HEX,
    "digitalocean": f"dop_v1_{_HEX}{_HEX}",
    "grafana": f"glsa_{_ALNUM}_{_HEX[:8]}",
    "notion": f"secret_{_ALNUM}abcdefghijk",
    "figma": f"figd_{_ALNUM}abcdefgh",
    "linear": f"lin_api_{_ALNUM}abcdefgh",
    "atlassian": f"ATATT3{_ALNUM}{_ALNUM}",
    "azure client": f"abc8Q~{_ALNUM}",
    "anthropic": f"sk-ant-api03-{_ALNUM}",
    "openrouter": f"sk-or-v1-{_HEX}{_HEX}",
    "langfuse": f"sk-lf-{_UUID}",
    "elevenlabs": f"sk_{_HEX}{_HEX[:16]}",
    "nvidia": f"nvapi-{_ALNUM}{_ALNUM}",
    "jina": f"jina_{_HEX}{_ALNUM}",
    "firecrawl": f"fc-{_HEX}",
    "apify": f"apify_api_{_ALNUM}abcd",
    "supabase": f"sbp_{_HEX}{_HEX[:8]}",
    "netlify": f"nfp_{_ALNUM}abcdefgh",
    "airtable": f"patAbCdEfGhIjKlMn.{_HEX}{_HEX}",
    "google oauth": f"GOCSPX-{_ALNUM[:28]}",
    "google refresh": f"1//0{_ALNUM}{_ALNUM}",
    "mailchimp": f"{_HEX}-us14",
    "new relic": f"NRAK-{_CAPITALS[:27]}",
    "sentry": f"sntrys_{_ALNUM}{_ALNUM}",
    "heroku": f"HRKU-{_UUID}",
    "render": f"rnd_{_ALNUM[:28]}",
    "planetscale": f"pscale_tkn_{_ALNUM}abcdefghijk",
    "doppler": f"dp.pt.{_ALNUM}abcdefghijk",
    "vault": f"hvs.{_ALNUM}{_ALNUM}",
    "terraform": f"{_ALNUM[:14]}.atlasv1.{_ALNUM}{_ALNUM}",
    "pypi": f"pypi-AgEIcHlwaS5vcmc{_ALNUM}",
    "rubygems": f"rubygems_{_HEX}{_HEX[:16]}",
    "docker": f"dckr_pat_{_ALNUM[:27]}",
    "square": f"sq0atp-{_ALNUM[:22]}",
    "clickup": f"pk_12345678_{_CAPITALS}",
    "plaid": f"access-production-{_UUID}",
    "tailscale": f"tskey-auth-{_ALNUM[:12]}-{_ALNUM}",
    "age": f"AGE-SECRET-KEY-1{_CAPITALS}{_CAPITALS[:26]}",
    "contentful": f"CFPAT-{_ALNUM}abcdefghijk",
    "dynatrace": f"dt0c01.{_CAPITALS[:24]}.{_CAPITALS}{_CAPITALS}",
    "deepl": f"{_UUID}:fx",
    "password in an address": "postgres://admin:hunter2@db.example/main",
    "passphrase with a word that placeholders have": "postgres://admin:my-secret-garden-gate@db.example/main",
}
#: What is a secret by a name or by chance: masked everywhere, and refused nowhere.
LIKELY = {
    "mixed": "Zx9Kq2LmP4vT7wRb1NcY5sHd8JfG",
    "with strokes": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzx3pQrStUv",
    "hexadecimal": "4f2a9c1b7e8d3f6a5b0c9d8e7f6a5b4c",
    "of a maker": f"newmaker_{_HEX}{_HEX[:8]}",
    "password": "password: Hunter2Hunter2",
    "pwd": "pwd=Hunter2Hunter2",
    "german": "Passwort: Hunter2Hunter2",
    "spanish": "contraseña: Hunter2Hunter2",
    "french": "mot de passe : Hunter2Hunter2",
    "passphrase": "passphrase: Hunter2Hunter2",
    "connection string": "Server=db;User Id=sa;Password=Hunter2Hunter2;",
    "environment": "export DB_PASSWORD=Hunter2Hunter2",
    "client secret": "client_secret: Hunter2Hunter2",
    "query": "https://api.example/v1?api_key=Hunter2Hunter2&q=1",
}
#: What no form tells from a hash, an id or words; docs/security.md names them.
UNTOLD = (
    f"https://api.example/hooks/{LIKELY['mixed']}",
    _UUID,
    _HEX + _HEX,
    _HEX + _HEX[:8],
    "correct horse battery staple",
)
#: What people write, and what looks a little like a secret.
HARMLESS = [
    "Build a chatbot with gpt-4o-mini-2024-07-18 and text-embedding-3-small, temperature 0.2, max tokens: 12345678",
    "https://docs.google.com/spreadsheets/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit#gid=0",
    "http://localhost:3000/api/v1/prediction/6f1c2a52-8f0b-5d3e-9a37-0d6a4c1f2b90 and http://[::1]:8080/",
    "The ConversationalRetrievalQAChain, RecursiveCharacterTextSplitter and chatOpenAI_0.data.instance",
    "us.anthropic.claude-3-5-sonnet-20241022-v2:0 on Bedrock, Basic understanding of Bearer tokens required",
    "mongodb+srv://{{$vars.user}}:{{$vars.password}}@cluster.example/ and https://user@example.com/",
    "Say 'your password:' and 'the api key = ' and authorization: required. ask-the-desk risk-assessments-of-2024",
    "postgresql://USER:PASSWORD@db.example:5432/shop, https://me:YOUR_KEY@api.example and amqp://guest:***@mq.example",
    "postgresql://lector:CONTRASEÑA@db.example:5432/citas, mysql://shop:MOT_DE_PASSE@db.example and https://ana:SENHA@x.example",
    "Bearer YOUR_STORE_ACCESS_TOKEN, sk-your-own-openai-key-here",
    "sha 0d6a4c1f2b900d6a4c1f2b900d6a4c1f2b900d6a and 2026-01-01T00:00:00.000Z",
]


@pytest.mark.parametrize("secret", KNOWN.values(), ids=KNOWN)
def test_p102_a_known_form_is_found_and_masked_wherever_it_is(secret: str) -> None:
    for text in (secret, f"use {secret} please", f'{{"x":"{secret}"}}', f"key={secret}\n", f"({secret})"):
        assert holds_secret(text), text
        assert holds_secret({"a": [text]}), text
        marked = secret.partition("://")[2].partition("@")[0] or secret
        assert marked not in masked(text), text
        assert marked not in str(redacted({"a": [text]})), text


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert not holds_secret(text)
    assert masked(text) == text
    assert redacted({"question": text}) == {"question": text}


@pytest.mark.parametrize(
    "name",
    ["openAIApiKey", "X-Api-Key", "Authorization", "db_password", "accessToken", "Cookie", "Ocp-Apim-Subscription-Key"],
)
def test_a_name_makes_a_secret_of_its_value(name: str) -> None:
    assert named_secret(name)
    assert looks_secret(name, "abc")
    assert not looks_secret(name, "{{$vars.key}}")
    rows = [{"key": name, "value": "abc"}, {"key": "Accept", "value": "json"}]
    clean = [{"key": name, "value": MASK}, {"key": "Accept", "value": "json"}]
    assert redacted({name: "abc", "rows": rows}) == {name: MASK, "rows": clean}
    assert redacted({"headers": json.dumps({name: "abc"})}) == {"headers": json.dumps({name: MASK})}


@pytest.mark.parametrize("name", ["maxTokens", "question", "sessionId", "memoryKey", "input_tokens", "tokenLimit"])
def test_other_names_do_not(name: str) -> None:
    assert not named_secret(name)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("the key is Zx9Kq2LmP4vT7wRb1NcY5sHd8JfG, thanks", "Zx9Kq2LmP4vT7wRb1NcY5sHd8JfG"),
        ("azure 4f2a9c1b7e8d3f6a5b0c9d8e7f6a5b4c", "4f2a9c1b7e8d3f6a5b0c9d8e7f6a5b4c"),
        ("password: hunter22", "hunter22"),
        ("https://api.example/v1?api_key=abc123xyz&q=1", "abc123xyz"),
        ('"X-Auth-Token": "9f8e7d6c5b"', "9f8e7d6c5b"),
    ],
    ids=["mixed", "hexadecimal", "password", "query", "header"],
)
def test_random_texts_and_values_after_a_name_are_masked_but_not_refused(text: str, marked: str) -> None:
    assert not holds_secret(text)
    assert masked(text) == text.replace(marked, MASK)


@pytest.mark.parametrize("text", LIKELY.values(), ids=LIKELY)
def test_p102_what_is_likely_a_secret_is_masked_in_texts_and_in_json(text: str) -> None:
    for shown in (masked(f"use {text} please"), str(redacted({"a": [f"use {text} please"]}))):
        assert MASK in shown
        assert not any(mark in shown for mark in marks_of(text))


def marks_of(secret: str) -> list[str]:
    """Pieces of a secret of which none may be seen: the whole, its middle, a password."""
    return [mark for mark in (secret, _ALNUM[4:16], _HEX[4:16], _CAPITALS[4:16], "Hunter2") if mark in secret]


def test_p102_a_text_is_masked_before_it_is_cut() -> None:
    cut_first = re.compile(r"masked\((?:shorten|shortened)\(|masked\([^()\n]*(?:\([^()\n]*\))?[^()\n]*\[:")
    files = Path(flowise_dev_agent.__file__).parent.rglob("*.py")
    assert [path.name for path in files if cut_first.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("text", UNTOLD)
def test_what_cannot_be_told_is_no_secret(text: str) -> None:
    assert not holds_secret(text)
    assert masked(text) == text


def test_ids_stay_and_known_forms_in_them_do_not() -> None:
    ids = {"id": _HEX, "thread_id": _HEX, "nodeIds": [LIKELY["mixed"]], _HEX: 1}
    assert redacted(ids) == ids
    assert redacted({"chat_id": KNOWN["github"], "paid": _HEX}) == {"chat_id": MASK, "paid": MASK}


def test_p102_a_known_form_in_a_key_is_masked() -> None:
    assert redacted({f"token ghp_{'a1' * 18}": 1}) == {f"token {MASK}": 1}


def test_json_that_is_nested_without_end_is_masked_as_a_whole() -> None:
    value: object = "x"
    for _ in range(300):
        value = [value]
    assert MASK in str(redacted(value))


def test_the_form_of_an_address_is_no_secret() -> None:
    assert not holds_secret("[PLACEHOLDER: the address, e.g. mysql://user:password@host/db]")
    assert holds_secret("mysql://user:hunter2@host/db")
