"""Share links are signed: what was not made here is not read, and keys rotate."""

import hmac
from datetime import UTC, datetime
from uuid import UUID

import jwt
import pytest

from flowise_dev_agent.access.shares import ShareSigner
from flowise_dev_agent.errors import ShareNotSignableError
from flowise_dev_agent.planning.plan_text import without_section
from flowise_dev_agent.redaction import masked, without_contacts

OLD, NEW = bytes([1] * 32), bytes([2] * 32)
ID = UUID("0a1b2c3d-0000-4000-8000-00000000f10e")
END = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)


def token_of(signer: ShareSigner) -> str:
    return signer.link(ID, END).rpartition("/")[2]


def test_a_link_is_read_by_its_key_until_that_key_is_gone() -> None:
    token = token_of(ShareSigner((OLD,)))
    assert ShareSigner((OLD,)).read(token) == (ID, END)
    # A rotation: the new key signs, the old one still opens.
    both = ShareSigner((NEW, OLD))
    assert both.read(token) == (ID, END)
    assert ShareSigner((NEW,)).read(token_of(both)) == (ID, END)
    assert ShareSigner((NEW,)).read(token) is None
    assert ShareSigner(()).read(token) is None


def test_a_link_with_any_part_changed_is_not_read() -> None:
    token = token_of(ShareSigner((OLD,)))
    # The last letter holds two bits that say nothing.
    for at in range(len(token) - 1):
        text = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        assert ShareSigner((OLD,)).read(text) is None, at
    for text in ("", "..", token[:-1], f"{token}AAAA", token.rpartition(".")[0] + ".", "é" * 100):
        assert ShareSigner((OLD,)).read(text) is None, text


@pytest.mark.parametrize(
    ("claims", "algorithm", "key"),
    [
        ({"aud": "another purpose"}, "HS256", None),
        ({}, "none", ""),
        # The key of SECRETS_KEY itself signs no links.
        ({}, "HS256", OLD),
    ],
    ids=["purpose", "unsigned", "underived"],
)
def test_another_token_is_no_link(claims: dict[str, str], algorithm: str, key: bytes | str | None) -> None:
    real = jwt.decode(token_of(ShareSigner((OLD,))), options={"verify_signature": False})
    derived = hmac.digest(OLD, real["aud"].encode(), "sha256")
    assert ShareSigner((OLD,)).read(jwt.encode(real, derived, "HS256")) == (ID, END)
    assert ShareSigner((OLD,)).read(jwt.encode(real | claims, derived if key is None else key, algorithm)) is None


def test_a_link_in_a_text_is_masked() -> None:
    link = ShareSigner((OLD,), "https://agent.example").link(ID, END)
    assert token_of(ShareSigner((OLD,))) not in masked(f"Have a look at {link} please")


def test_a_link_lies_behind_the_number_sign_of_the_services_address() -> None:
    assert ShareSigner((OLD,), "https://agent.example").link(ID, END).startswith("https://agent.example/#/shared/ey")
    assert ShareSigner((OLD,)).link(ID, END).startswith("/#/shared/ey")
    with pytest.raises(ShareNotSignableError, match="SECRETS_KEY"):
        ShareSigner().link(ID, END)


def test_contacts_are_masked_in_every_text_and_other_numbers_stay() -> None:
    said = {"a": ["Write to ada.l+x@mail.example.org, or call +49 (89) 123-4567."], "at": "2026-11-23T07:00:00Z"}
    assert without_contacts(said) == {"a": ["Write to [contact], or call [contact]."], "at": "2026-11-23T07:00:00Z"}
    for text in ("1 + 2", "C++ 11", "@here", "a@b", "v2+build.7", "gpt-4o-mini", "+5 points"):
        assert without_contacts(text) == text


@pytest.mark.parametrize("heading", ["Personal data", "Personenbezogene Daten", "Données personnelles", "Dane osobowe"])
def test_a_section_is_left_out_of_a_plan_in_any_language(heading: str) -> None:
    text = f"# Flow\n\n## Nodes\n- a\n\n## {heading}\n- `ssn`\n- `salary`\n\n## Values\n- b"
    assert without_section(text, "plan.heading.personal_data") == "# Flow\n\n## Nodes\n- a\n\n## Values\n- b"
