"""`citeray` with a short lease of the index, so that a test can stop a holder for longer.

python -m tests.faults.on_ray.short_lease index build SOURCE ...
"""

from __future__ import annotations

from cluster.index import lease

# Ample for a busy machine's pauses, and a round that outlasts it takes no two minutes.
LEASE_S = 20.0


def main() -> None:
    lease.LEASE_S, lease.RENEW_S = LEASE_S, 2.0
    # Only now: others take the lease's length from its module as they are imported.
    from commands.cli import main as run_command

    run_command()


if __name__ == "__main__":
    main()
