import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import flowise_dev_agent
from flowise_dev_agent import errors
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.patch import Finding
from flowise_dev_agent.patch.model.findings import sentence
from flowise_dev_agent.texts import LANGUAGES, Text, catalogue, say, say_in, text, translated

ENGLISH = catalogue("en")
PACKAGE = Path(flowise_dev_agent.__file__).parent
_CODE = re.compile(r"[a-z_]+(\.[A-Za-z0-9_]+)+")
_FINDING = re.compile(r"[A-Z][A-Z0-9_]{3,}")
_PLURAL = re.compile(r"_(one|many|other)$")


def places(words: str) -> set[str]:
    return set(re.findall(r"\{\{(\w+)\}\}", words))


def literals() -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_every_text_is_used() -> None:
    used = set(literals())
    findings = {f"finding.{one}" for one in used if _FINDING.fullmatch(one)}
    built = {match[1] for one in used if (match := re.fullmatch(r"([a-z_]+\.(?:[a-z_]+[._])?)", one))}
    unused = [
        key
        for key in ENGLISH
        if (bare := _PLURAL.sub("", key)) not in used | findings and not any(bare.startswith(one) for one in built)
    ]
    assert unused == []


def test_every_code_has_a_text_and_the_parameters_that_it_needs() -> None:
    areas = {key.partition(".")[0] for key in ENGLISH}
    wrong: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if (
                node.func.id not in ("say", "say_in", "said", "text")
                or not node.args
                or not isinstance(node.args[0], ast.Constant)
            ):
                continue
            code = node.args[0].value
            if not isinstance(code, str) or not _CODE.fullmatch(code) or code.partition(".")[0] not in areas:
                continue
            names = {one.arg for one in node.keywords}
            found = ENGLISH.get(code) or ENGLISH.get(f"{code}_other")
            if found is None or (None not in names and not places(found) <= names):
                wrong.append(f"{path.name}:{node.lineno} {code}")
    assert wrong == []


#: Errors that no person reads in a language: those of commands and settings, and what a model or a program is told.
_FOR_PROGRAMS = (
    *("cli", "devkit", "mcp", "settings", "agent/domain", "agent/registry"),
    *("api/once", "models/parsing", "persistence/schema"),
)
_OF_SETTINGS = {"ConfigurationError", "LeaseLostError", "IdempotencyKeyReusedError"}
_ERRORS = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, AgentError)}


def test_p123_an_error_for_people_is_a_text_of_the_catalogue() -> None:
    plain: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        if module.startswith(_FOR_PROGRAMS):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                name, said = node.func.id, node.args[0]
                if name in _ERRORS - _OF_SETTINGS and (
                    isinstance(said, ast.JoinedStr) or (isinstance(said, ast.Constant) and isinstance(said.value, str))
                ):
                    plain.append(f"{module}:{node.lineno} {name}")
    assert plain == []


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_a_translation_has_the_codes_and_places_of_the_english_text(language: str) -> None:
    translated = catalogue(language)
    bare = {_PLURAL.sub("", key) for key in ENGLISH}
    assert [key for key in translated if _PLURAL.sub("", key) not in bare] == []
    assert [key for key, words in translated.items() if key in ENGLISH and places(words) != places(ENGLISH[key])] == []


def test_a_parameter_is_never_read_as_a_pattern() -> None:
    assert say("finding.at", node="{{problem}} {0}", problem="%s \\1") == "{{problem}} {0}: %s \\1"
    assert text("finding.at", node="A", problem="b").params == {"node": "A", "problem": "b"}


def test_an_unknown_language_is_english_and_an_unknown_code_an_error() -> None:
    assert say_in("xx", "finding.CYCLE") == say("finding.CYCLE") != say_in("de", "finding.CYCLE")
    with pytest.raises(KeyError):
        say("finding.NO_SUCH_CODE")


def test_a_finding_says_its_sentence_and_keeps_its_detail() -> None:
    found = Finding(code="NOT_A_NUMBER", severity="error", detail="`k` is no number", where="a_0", field="config.k")
    assert found.message == say("finding.NOT_A_NUMBER", field="k")
    assert "`k` is no number" in found.text
    assert found.message not in found.text
    unknown = Finding(code="OF_A_PLUGIN", severity="error", detail="What the plugin says.")
    assert unknown.message == "What the plugin says."
    assert Finding.model_validate(found.model_dump()) == found


#: Errors on which Flowise says nothing: the flow runs, and does less than it shows.
_SILENT = {"HTTP_BODY_LOST", "ONE_STORE_ASKED", "STATE_NOT_FILLED", "STEP_NEVER_RUNS", "SETTING_IGNORED"}


def warnings() -> Iterator[str]:
    """Codes that code gives as a warning: such findings stay with the flow, and people read them."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            given = {one.arg: one.value for one in node.keywords}
            severity = given.get("severity")
            warns = isinstance(severity, ast.Constant) and severity.value == "warning"
            if node.func.id == "warning" or (node.func.id == "Finding" and warns):
                code = given.get("code", node.args[0] if node.args else None)
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield code.value


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_finding_that_stays_with_a_flow_says_what_to_do(language: str) -> None:
    codes = {*warnings(), *_SILENT}
    assert len(codes) > 30
    assert [code for code in sorted(codes) if not catalogue(language).get(f"remedy.{code}")] == []
    said = sentence("VALUE_IGNORED", {"node": "Shop"}, language)
    assert catalogue(language)["remedy.VALUE_IGNORED"] in said
    assert (
        translated(Finding(code="VALUE_IGNORED", severity="warning", params={"node": "Shop"}).words, language) == said
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_place_of_a_text_is_filled(language: str) -> None:
    # Paths (`/{id}`) and forms (`{Title}`) have places of their own.
    single = re.compile(r"(?<![{/])\{\w+\}(?!\})")
    texts = catalogue(language).items()
    assert [key for key, words in texts if single.search(words) and not key.startswith("form.")] == []


@pytest.mark.parametrize(
    ("language", "other"),
    [("de", "du|dich|dir|dein|deine[mnrs]?"), ("fr", "tu|toi|tes"), ("es", "usted|ustedes")],
)
def test_people_are_addressed_in_one_way(language: str, other: str) -> None:
    told = re.compile(rf"(?<![\w-])({other})(?![\w-])", re.IGNORECASE)
    assert [key for key, words in catalogue(language).items() if told.search(words)] == []


def test_a_stored_text_whose_code_is_gone_reads_as_it_was_stored() -> None:
    assert translated(Text("gone.code", "It was said.", {}), "de") == "It was said."


def test_no_sentence_has_two_codes() -> None:
    codes: dict[str, list[str]] = {}
    for key, words in ENGLISH.items():
        # One word may be another one in another language, by where it stands.
        if len(words.split()) > 3 and not key.startswith(("form.", "option.", "ledger.")):
            codes.setdefault(words, []).append(key)
    assert [found for found in codes.values() if len(found) > 1] == []


#: Numbers that are never one: bounds of the service, and sizes.
_NEVER_ONE = {"size", "limit", "sent"}
#: Numbers for which a language takes the singular.
_SINGLE = {"fr": (0, 1)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_has_a_plural_behind_one(language: str) -> None:
    texts = catalogue(language)
    single = _SINGLE.get(language, (1,))
    several, one = set[str](), set[str]()
    for key, words in texts.items():
        if key.endswith("_other"):
            several |= set(re.findall(r"\}\} (\w+)", words))
            one |= set(re.findall(r"(?:\}\}|\b1) (\w+)", texts[key.removesuffix("other") + "one"]))
    several -= one
    assert len(several) > 10
    wrong: list[str] = []
    for key, words in texts.items():
        code = _PLURAL.sub("", key)
        for number in (0, 1, 2):
            given = {name: "many" if name in _NEVER_ONE else str(number) for name in places(words)}
            said = say_in(language, code, **given | {"count": number})
            behind = {word for pair in re.findall(rf"(?<!\d){number} (\w+)(?: (\w+))?", said) for word in pair}
            if number in single and behind & several:
                wrong.append(f"{key}: {said}")
    assert wrong == []


def test_french_signs_have_spaces_that_do_not_break() -> None:
    assert [key for key, words in catalogue("fr").items() if re.search("\u0020[:;!?»]|«\u0020", words)] == []
