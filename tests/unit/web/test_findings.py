"""What the page says of findings in other languages than English."""

import re
from pathlib import Path

import flowise_dev_agent.web
from flowise_dev_agent.patch.validate.context import RULES

SENTENCES = Path(flowise_dev_agent.web.__file__).parent / "app" / "src" / "i18n" / "findings.ts"


def test_every_code_of_the_checks_has_a_sentence_on_the_page() -> None:
    said = set(re.findall(r"^  ([A-Z_]+):", SENTENCES.read_text(), re.MULTILINE))
    assert {code for rule in RULES for code in rule.codes} - said == set()
