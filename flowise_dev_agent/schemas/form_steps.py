"""Steps of a flow in a form: their kinds, their places, and the names in their texts.

The list is a tree: a step is behind the one above it, or on the branch that it names. In its texts `{Title}` stands for
the answer of a step that leads to it, `{field}` for a field of the form that starts the flow, and `{message}` for what
a person wrote or a schedule gives. Other braces stay as they are.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, StringConstraints

from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.base import JsonValue
from flowise_dev_agent.schemas.form_parts import FormPart, Name, Title, called, hint, shown_for
from flowise_dev_agent.texts import say

Kind = Literal["answer", "sort", "approve", "call", "each", "reply", "repeat"]
Branch = Annotated[Title, StringConstraints(min_length=1)]
Prose = Annotated[str, StringConstraints(strip_whitespace=True, max_length=32_000)]
KINDS: Final[Mapping[Kind, str]] = {kind: say(f"form.step.{kind}") for kind in get_args(Kind)}
APPROVED, REJECTED, MESSAGE = "approved", "rejected", "message"
#: Required field of each kind; below, the fields whose texts may contain names.
_NEEDS: Final[Mapping[Kind, str]] = {
    "answer": "prompt",
    "sort": "branches",
    "approve": "question",
    "call": "url",
    "each": "prompt",
    "repeat": "back_to",
}
_TEXTS: Final = ("prompt", "question", "url", "message")
_LABEL, _LABEL_WORDS, QUOTE = 40, 5, 200
#: Characters removed from titles: quotes, braces, and those that OpenAI refuses in the name of an answer.
_SIGNS: Final = re.compile(r"\s?[{}<>\"“”„«»/\\|]\s?")
_UNNAMED: Final = re.compile(r"[<>/\\|]")
_DEEPEST: Final = 50
_NAME: Final = re.compile(r"\{([^{}\"\n]{1,60})\}")
#: Text that looks like a name, unlike `{3}` or `{"a": 1}`.
_LIKE_A_NAME: Final = re.compile(r"[\d_ ]*[^\W\d_][\w ]*")
#: Scheme, host and port; names in braces may only follow them.
_ADDRESS: Final = re.compile(r"https?://[^\s/?#\\@{}<>\"'|^`]+(?:[/?#]\S*)?")


class FormStep(FormPart):
    """One step of a flow."""

    kind: Kind = Field(json_schema_extra=called("step", *KINDS))
    title: Title = ""
    branch: Title = Field(
        default="",
        description=hint("branch"),
    )
    prompt: Prose = Field(
        default="",
        description=hint("prompt"),
        json_schema_extra=shown_for("answer", "sort", "each"),
    )
    model: Name | None = Field(
        default=None,
        description=hint("model"),
        json_schema_extra=shown_for("answer", "sort", "each"),
    )
    temperature: float | None = Field(
        default=None, ge=0, le=2, allow_inf_nan=False, json_schema_extra=shown_for("answer", "sort", "each")
    )
    tools: list[Name] = Field(
        default_factory=list,
        max_length=10,
        description=hint("tools"),
        json_schema_extra=shown_for("answer"),
    )
    branches: list[Branch] = Field(default_factory=list, max_length=10, json_schema_extra=shown_for("sort"))
    question: Prose = Field(
        default="",
        description=hint("question"),
        json_schema_extra=shown_for("approve"),
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field(default="GET", json_schema_extra=shown_for("call"))
    url: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000)] = Field(
        default="",
        json_schema_extra=shown_for("call"),
    )
    body: Prose = Field(
        default="",
        description=hint("body"),
        json_schema_extra=shown_for("call") | {"x-rows": 3},
    )
    message: Prose = Field(default="", description=hint("message"), json_schema_extra=shown_for("reply"))
    back_to: Title = Field(
        default="",
        description=hint("back_to"),
        json_schema_extra=shown_for("repeat"),
    )
    times: int = Field(
        default=3,
        ge=1,
        le=20,
        description=hint("times"),
        json_schema_extra=shown_for("repeat"),
    )

    @property
    def name(self) -> str:
        """Title of the step, else of its kind."""
        return self.title or KINDS[self.kind]

    @property
    def label(self) -> str:
        """Title in Flowise; without a title, the first words of its text."""
        said = " ".join((self.prompt or self.question or self.message).split()[:_LABEL_WORDS])
        return self.title or shortened(_SIGNS.sub(" ", said), _LABEL).strip() or KINDS[self.kind]

    @property
    def line(self) -> str:
        """The step in one line."""
        return self._line_with(self.prompt)

    @property
    def quote(self) -> str:
        """Beginning of the line, by which a plan refers to the step; a title stands for the prompt."""
        return self._line_with("" if self.title else self.prompt)[:QUOTE].strip()

    def _line_with(self, prompt: str) -> str:
        call = f"{self.method} {self.url} {self.body}" if self.kind == "call" else ""
        texts = (", ".join(self.branches), prompt, self.question, call, self.message, self.back_to)
        where = f" ({self.branch})" if self.branch else ""
        return f"{self.name}{where}: {' '.join(' '.join(texts).split())}".removesuffix(": ")


# --- Places of steps ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A place at which a path continues.

    `behind` is the number of the step before it (-1: the start), `branch` the branch of that step, `answer` the step
    with the latest answer (-1: none).
    """

    behind: int = -1
    branch: str = ""
    answer: int = -1


class Paths:
    """Open paths of a flow, while its steps are added one by one."""

    def __init__(self) -> None:
        #: By path: the place at which it continues, or None; the reason why it is closed; branch -> path.
        self._ends: list[Place | None] = [Place()]
        self._closed: dict[int, str] = {}
        self.branches: dict[str, int] = {}
        self._here = 0

    @property
    def open(self) -> list[Place]:
        """Places at which paths continue."""
        return [end for end in self._ends if end]

    def end(self, branch: str = "") -> Place | None:
        """Place of a step on this branch ("": behind the last step); None if there is none."""
        path = self.branches.get(key(branch)) if branch else self._here
        return None if path is None else self._ends[path]

    def take(self, number: int, step: FormStep) -> Place:
        """Add the next step and return its place. Raises ValueError if there is no place for it."""
        path = self.branches.get(key(step.branch)) if step.branch else self._here
        end = self.end(step.branch)
        if path is None or end is None:
            why = self._closed.get(-1 if path is None else path, f"there is no branch “{step.branch}” above it.")
            more = f" Say which branch it is on: {_listed(self.branches)}." if self.branches else " Leave it out."
            raise ValueError(f"{why}{more}")
        self._here = path
        match step.kind:
            case "sort":
                for name in step.branches:
                    if key(name) in (*self.branches, APPROVED, REJECTED):
                        raise ValueError(f"there is another branch “{name}”. Give each branch a name of its own.")
                    self._branch(name, Place(number, name, end.answer))
                self._close("the step above it sorts.")
            case "approve":
                self.branches[APPROVED] = path
                self._branch(REJECTED, Place(number, REJECTED, end.answer))
                self._ends[path] = Place(number, APPROVED, end.answer)
            case "reply" | "repeat":
                self._close(f"nothing follows “{step.name}”, which ends its path.")
            case _:
                self._ends[path] = Place(number, answer=number)
        return end

    def _branch(self, name: str, begin: Place) -> None:
        self.branches[key(name)] = len(self._ends)
        self._ends.append(begin)

    def _close(self, why: str) -> None:
        self._ends[self._here], self._closed[self._here] = None, why


@dataclass(frozen=True)
class Tree:
    """Places of all steps, and the places at which paths are still open."""

    places: Sequence[Place]
    ends: Sequence[Place]

    def above(self, number: int) -> Iterator[int]:
        """Numbers of the steps that lead to this one, nearest first."""
        while (number := self.places[number].behind) >= 0:
            yield number


def tree_of(steps: Sequence[FormStep]) -> Tree:
    """Find the place of each step. Raises ValueError with the step and the reason if one has no place."""
    paths, found = Paths(), list[Place]()
    for n, step in enumerate(steps):
        try:
            found.append(paths.take(n, step))
        except ValueError as error:
            raise ValueError(f"{_at(n, step)} {error}") from None
    return Tree(found, paths.open)


def key(name: str) -> str:
    """Normalise a name for comparison."""
    return " ".join(name.split()).casefold()


def _listed(names: Mapping[str, object] | Sequence[str]) -> str:
    return ", ".join(f"“{name}”" for name in names)


def _at(number: int, step: FormStep) -> str:
    return f"Step {number + 1} (“{step.name}”):"


# --- Names in texts -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """Meaning of a name in braces: the answer of step `step`, else form field `field`, else the person's message."""

    name: str
    step: int = -1
    field: str = ""


def names_at(number: int, steps: Sequence[FormStep], tree: Tree, fields: Sequence[str] | None) -> dict[str, Named]:
    """Names that the texts of a step can use. `fields` are the names of a form; None if a message starts the flow."""
    if steps[number].kind == "each":
        # Flowise runs it apart from all other steps.
        return {}
    found = [Named(MESSAGE)] if fields is None else [Named(one, field=one) for one in fields]
    found += [
        Named(steps[one].title, one) for one in tree.above(number) if steps[one].title and steps[one].kind != "sort"
    ]
    return {key(one.name): one for one in found}


def pieces(text: str, known: Mapping[str, Named]) -> list[str | Named]:
    """Split a text into plain pieces and names."""
    found, start = list[str | Named](), 0
    for one in _NAME.finditer(text):
        if (named := known.get(key(one[1]))) is not None:
            found += [text[start : one.start()], named]
            start = one.end()
    return [one for one in [*found, text[start:]] if one != ""]


def json_of(body: str) -> JsonValue:
    """Parse a JSON body. Raises ValueError."""
    value = json.loads(body)
    # Refuses lone surrogates, NaN and infinity.
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    if _is_deep(value, _DEEPEST):
        raise ValueError(f"more than {_DEEPEST} levels")
    return value


def _is_deep(value: JsonValue, most: int) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most < 0 or any(_is_deep(one, most - 1) for one in items)


def texts_of(value: JsonValue) -> Iterator[str]:
    """All texts in a JSON body."""
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_of(one)


# --- Problems -----------------------------------------------------------------------------------------------------


def problems(steps: Sequence[FormStep], fields: Sequence[str] | None) -> list[str]:
    """Problems of the steps, each as a sentence with the step and the remedy. `fields` as in `names_at`."""
    found = [f"{_at(n, step)} {text}" for n, step in enumerate(steps) for text in _own(step)]
    taken = {MESSAGE} if fields is None else {key(one) for one in fields}
    for n, step in enumerate(steps):
        if step.title and key(step.title) in taken:
            found.append(f"{_at(n, step)} its title is taken. Give it another one.")
        taken.add(key(step.title))
    if found:
        return found
    try:
        tree = tree_of(steps)
    except ValueError as error:
        return [str(error)]
    for n, step in enumerate(steps):
        known = names_at(n, steps, tree, fields)
        found += [f"{_at(n, step)} {text}" for text in (*_misnamed(step, known), *_misplaced(n, steps, tree))]
    return [*found, *(
        f"{_at(end.behind, steps[end.behind])} nothing is done on its branch “{end.branch}”. Add a step on it below "
        "this one, for example a reply."
        for end in tree.ends if end.branch and (end.branch != APPROVED or end.answer < 0)
    )]  # fmt: skip


def _own(step: FormStep) -> Iterator[str]:
    """Problems of a step regardless of its place."""
    needed = _NEEDS.get(step.kind)
    # An address may be filled in later, see `DesignForm.needs`.
    if needed and needed != "url" and not getattr(step, needed):
        yield f"`{needed}` is missing. Fill it in."
    for name, field in FormStep.model_fields.items():
        shown: Any = field.json_schema_extra or {}
        kinds = shown.get("x-show", {}).get("kind", [step.kind])
        if step.kind not in kinds and getattr(step, name) != field.get_default(call_default_factory=True):
            yield f"`{name}` belongs to the kind {' or '.join(f'`{kind}`' for kind in kinds)}. Leave it out."
    if step.kind == "sort" and len({key(one) for one in step.branches}) < max(2, len(step.branches)):
        yield "it sorts into two branches or more, each with a name of its own. Name them."
    if step.kind == "answer" and _UNNAMED.search(step.title):
        yield "OpenAI refuses < > / \\ and | in the name of an answer. Leave them out of its title."
    if step.url and not _ADDRESS.fullmatch(step.url):
        yield (
            "its address does not begin with http:// or https:// and a host, or has a user, a password or a space in "
            "it. Write it in full; names in braces may stand behind the host."
        )
    if step.body and step.method == "GET":
        yield "a GET request has no body. Choose another method, or leave the body out."


def _misnamed(step: FormStep, known: Mapping[str, Named]) -> Iterator[str]:
    """Problems of the names in a step's texts."""
    texts: list[str] = [getattr(step, name) for name in _TEXTS]
    try:
        texts += [*texts_of(json_of(step.body))] if step.body else []
    except (ValueError, RecursionError):
        yield 'its body is no JSON. Write it like {"text": "{Title}"}, with names in braces inside of quotes.'
    can = f"It can name {', '.join(f'{{{one.name}}}' for one in known.values())}." if known else (
        "Nothing can be named here: it is given one item, and nothing else.")  # fmt: skip
    if any("{{" in text for text in texts):
        yield f"two braces are a sign of Flowise. Put a name into one pair of braces, or a space between them. {can}"
        return
    said = [one[1] for text in texts for one in _NAME.finditer(text) if _LIKE_A_NAME.fullmatch(one[1])]
    yield from (f"{{{one}}} is not known here. {can}" for one in dict.fromkeys(said) if key(one) not in known)


def _misplaced(number: int, steps: Sequence[FormStep], tree: Tree) -> Iterator[str]:
    """Problems of a reply or a repetition that follow from the steps above it."""
    step, above = steps[number], [*tree.above(number)]
    if step.kind == "reply" and not step.message and tree.places[number].answer < 0:
        yield "there is no answer yet that it could send. Write its message."
    if step.kind == "repeat":
        back = next((one for one in above if key(steps[one].title) == key(step.back_to)), -1)
        between = [steps[one].kind for one in above[: above.index(back)]] if back >= 0 else []
        titles = [steps[one].title for one in above if steps[one].title and steps[one].kind == "answer"]
        if back < 0 or steps[back].kind != "answer":
            can = f"Those that do: {_listed(titles)}." if titles else "Give one a title."
            yield f"no step “{step.back_to}” in which a model answers leads to it. {can}"
        elif not {"sort", "approve"} & {*between}:
            yield f"it would go back each time. Put a step that sorts or asks a person behind “{steps[back].title}”."
