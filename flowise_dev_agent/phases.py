"""The phases of reasoning, and how each is answered."""

from typing import Literal

Phase = Literal["classify", "plan", "patch", "judge"]
Mode = Literal["llm_guided", "deterministic"]
