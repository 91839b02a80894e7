"""Secrets by their form, by their name and by chance; and what is none of them."""

import json

import pytest

from flowise_dev_agent.redaction import MASK, guarded, holds_secret, looks_secret, named_secret, redacted

_ALNUM = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"
_HEX = "0d6a4c1f2b90e5d3a7b8c9d0e1f2a3b4"
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
    "password in an address": "postgres://admin:hunter2@db.example/main",
}
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
    "Bearer YOUR_STORE_ACCESS_TOKEN, sk-your-own-openai-key-here",
    "sha 0d6a4c1f2b900d6a4c1f2b900d6a4c1f2b900d6a and 2026-01-01T00:00:00.000Z",
]


@pytest.mark.parametrize("secret", KNOWN.values(), ids=KNOWN)
def test_p102_a_known_form_is_found_and_masked_wherever_it_is(secret: str) -> None:
    for text in (secret, f"use {secret} please", f'{{"x":"{secret}"}}', f"key={secret}\n", f"({secret})"):
        assert holds_secret(text), text
        assert holds_secret({"a": [text]}), text
        marked = secret.partition("://")[2].partition("@")[0] or secret
        assert marked not in guarded(text), text
        assert marked not in str(redacted({"a": [text]})), text


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert not holds_secret(text)
    assert guarded(text) == text
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
    assert guarded(text) == text.replace(marked, MASK)


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
