"""The right to write for a run, and how its loss is recognised."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

#: SQLSTATE raised by the SQL function `assert_owner`.
LEASE_LOST_STATE: Final = "FD001"
ASSERT_OWNER_SQL: Final = "SELECT assert_owner(%s, %s)"


@dataclass(frozen=True)
class Lease:
    """One claim of a run. The next claim raises the epoch, after which nothing can be written under this one."""

    run_id: UUID
    epoch: int
