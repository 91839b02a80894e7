"""Share links are signed: what was not made here is not read, and keys rotate."""

import base64
from datetime import UTC, datetime
from uuid import UUID

import pytest

from flowise_dev_agent.contracts.plan_words import without_section
from flowise_dev_agent.errors import ShareNotSignableError
from flowise_dev_agent.redaction import without_contacts
from flowise_dev_agent.runtime.admin.shares import ShareSigner

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


def test_a_link_with_any_byte_changed_is_not_read() -> None:
    token = token_of(ShareSigner((OLD,)))
    raw = base64.urlsafe_b64decode(token.removeprefix("fds_") + "=")
    for at in range(len(raw)):
        changed = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        text = "fds_" + base64.urlsafe_b64encode(changed).decode().rstrip("=")
        assert ShareSigner((OLD,)).read(text) is None, at
    for text in ("", "fds_", token[:-1], f"{token}A", token.removeprefix("fds_"), token.replace("fds_", "fda_")):
        assert ShareSigner((OLD,)).read(text) is None, text


def test_a_link_lies_behind_the_number_sign_of_the_services_address() -> None:
    assert ShareSigner((OLD,), "https://agent.example").link(ID, END).startswith("https://agent.example/#/shared/fds_")
    assert ShareSigner((OLD,)).link(ID, END).startswith("/#/shared/fds_")
    with pytest.raises(ShareNotSignableError, match="SECRETS_KEY"):
        ShareSigner().link(ID, END)


def test_contacts_are_masked_in_every_text_and_other_numbers_stay() -> None:
    said = {"a": ["Write to ada.l+x@mail.example.org, or call +49 (89) 123-4567."], "at": "2026-11-23T07:00:00Z"}
    assert without_contacts(said) == {
        "a": ["Write to [contact], or call [contact]."],
        "at": "2026-11-23T07:00:00Z",
    }
    for text in ("1 + 2", "C++ 11", "@here", "a@b", "v2+build.7", "gpt-4o-mini", "+5 points"):
        assert without_contacts(text) == text


@pytest.mark.parametrize("heading", ["Personal data", "Personenbezogene Daten", "Données personnelles"])
def test_a_section_is_left_out_of_a_plan_in_any_language(heading: str) -> None:
    text = f"# Flow\n\n## Nodes\n- a\n\n## {heading}\n- `ssn`\n- `salary`\n\n## Values\n- b"
    assert without_section(text, "Personal data") == "# Flow\n\n## Nodes\n- a\n\n## Values\n- b"
