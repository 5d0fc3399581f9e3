"""Database lease for work that only one process should do at a time."""

from __future__ import annotations

import time
import uuid

from sqlalchemy import and_, delete, insert, or_, update
from sqlalchemy.exc import IntegrityError

from serve.saved.database import Database
from serve.saved.tables import LEASES

LEASE_S = 120.0


class DatabaseLease:
    """Lease `name`, which expires `lease_s` seconds after its holder last renewed it.

    The clocks of machines that share a Postgres database must differ by less than `lease_s`. A
    lease that expires more than twice `lease_s` from now counts as free, because it was written
    before a clock was set back.
    """

    def __init__(self, database: Database, name: str, lease_s: float = LEASE_S) -> None:
        self._database = database
        self._name = name
        self._lease_s = lease_s
        self._holder = uuid.uuid4().hex

    def acquire(self) -> bool:
        """Acquire or renew the lease. Return False while another process holds it."""
        now = time.time()
        mine = {"holder": self._holder, "ends": now + self._lease_s}
        over = or_(LEASES.c.ends < now, LEASES.c.ends > now + 2 * self._lease_s)
        free = or_(LEASES.c.holder == self._holder, over)
        named = LEASES.c.name == self._name
        try:
            with self._database.write() as connection:
                if connection.execute(update(LEASES).where(named, free).values(mine)).rowcount:
                    return True
                connection.execute(insert(LEASES).values(name=self._name, **mine))
        except IntegrityError:
            # Another process holds the lease.
            return False
        return True

    def release(self) -> None:
        """Release the lease if this process still holds it."""
        own = and_(LEASES.c.name == self._name, LEASES.c.holder == self._holder)
        with self._database.write() as connection:
            connection.execute(delete(LEASES).where(own))
