"""Reading prompts as flows send them: where the person's own words, the history and the documents are."""

import re

from flowise_dev_agent.devkit.standin.embeddings import words
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest

_CONDENSE = re.compile(r"standalone question:?\s*$", re.IGNORECASE)
_FOLLOW_UP = re.compile(r"Follow Up (?:Input|question): *(.*?)\s*Standalone question:?\s*$", re.IGNORECASE | re.DOTALL)
# Prompts that wrap what the person said; the last group that matches is theirs.
_WRAPPERS = (
    re.compile(r"USER'S INPUT\s*-+\s*Here is the user's input[^\n]*:\s*(.*)$", re.DOTALL),
    re.compile(r"\bQuestion: *(.*?)\s*(?:Helpful Answer|Answer|Thought):?\s*$", re.DOTALL | re.IGNORECASE),
)
_FORMAT_INSTRUCTIONS = re.compile(r"\s*You must format your output as a JSON value.*$", re.DOTALL)
_CONTEXTS = (
    re.compile(r"-{6,}\s*\n(.*?)\n\s*-{6,}", re.DOTALL),
    re.compile(r"<context>(.*?)</context>", re.DOTALL | re.IGNORECASE),
    re.compile(r"\bcontext\b[^\n]*\n\n(.*?)\n\n\s*Question:", re.DOTALL | re.IGNORECASE),
    re.compile(r"\bcontext:\s*(.*?)(?:\n\s*Question:|$)", re.DOTALL | re.IGNORECASE),
)
_TAG = re.compile(r"</?doc[^>]*>")
_HUMAN_LINE = re.compile(r"^(?:Human|User): *(.+)$", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+|\n|$)")
_COMMON = frozenset(
    words(
        "a an and are at be by can did do does for from have how i in is it me my of on or our say the this to was we"
    )
    + words("what when where which who will with you your tell about there many much")
)


def is_condense_prompt(request: RecordedRequest) -> bool:
    """True for the prompt that turns a follow-up into a standalone question."""
    return bool(_CONDENSE.search(request.last_user))


def question_of(request: RecordedRequest) -> str:
    """What the person said last, without the template around it."""
    text = request.last_user
    if follow_up := _FOLLOW_UP.search(text):
        return follow_up.group(1).strip()
    if text.startswith("TOOL RESPONSE"):
        # The conversational agent sends its observation as a user turn; the question comes before it.
        asked = [message.text for message in request.messages if message.role == "user"]
        text = next((turn for turn in reversed(asked) if not turn.startswith("TOOL RESPONSE")), text)
    for wrapper in _WRAPPERS:
        if found := wrapper.search(text):
            text = found.group(1)
            break
    return _FORMAT_INSTRUCTIONS.sub("", text).strip()


def earlier_questions(request: RecordedRequest, question: str) -> list[str]:
    """What the person said before `question`, oldest first: earlier turns, or "Human:" lines in a prompt."""
    turns = [message.text.strip() for message in request.messages if message.role == "user"][:-1]
    if not turns:
        turns = [line.strip() for line in _HUMAN_LINE.findall(request.prompt)]
    return [turn for turn in turns if turn and turn != question]


def context_of(request: RecordedRequest) -> str:
    """The documents that a retrieval prompt carries; empty for other prompts."""
    for text in (request.system, request.last_user):
        if "context" in text.lower():
            for pattern in _CONTEXTS:
                if (found := pattern.search(text)) and (documents := _TAG.sub(" ", found.group(1)).strip()):
                    return documents
    return ""


def relevant_sentences(text: str, question: str, count: int = 2) -> str:
    """The sentences of `text` that share most words with `question`, in their order; the first ones if none does."""
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text) if sentence.strip()]
    asked = set(words(question)) - _COMMON
    scores = [len(asked & set(words(sentence))) for sentence in sentences]
    best = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))[:count]
    if best and scores[best[0]] > 0:
        best = [index for index in best if 2 * scores[index] > scores[best[0]]]
    return " ".join(sentences[index] for index in sorted(best))
