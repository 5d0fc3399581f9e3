"""Run `citeray` with a short lease, so that a test can stop a holder beyond it.

python -m tests.faults.on_ray.short_lease index build SOURCE ...
"""

from __future__ import annotations

from cluster.index import lease

# Longer than a pause of a busy machine, and short enough for a round of under two minutes.
LEASE_S = 20.0


def main() -> None:
    lease.LEASE_S, lease.RENEW_S = LEASE_S, 2.0
    # Imported after the change, because other modules copy the constant when they are imported.
    from commands.cli import main as run_command

    run_command()


if __name__ == "__main__":
    main()
