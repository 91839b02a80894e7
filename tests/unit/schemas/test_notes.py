"""A note to remember, as people send it."""

from typing import Any

import pytest
from pydantic import ValidationError

from flowise_dev_agent.schemas.node_artifacts import NewMemory


@pytest.mark.parametrize(
    "body",
    [
        {"text": " "}, {"text": "a\x00b"}, {"text": "a note", "memory_id": 3},
        {"text": "a note", "store_mode": "replace"},
        {"text": "a note", "memory_id": 3, "store_mode": "append"},
    ],
)  # fmt: skip
def test_a_note_says_something_and_names_the_one_that_it_replaces(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NewMemory.model_validate(body)
    assert NewMemory.model_validate({"text": "a note", "memory_id": 3, "store_mode": "replace"}).memory_id == 3
