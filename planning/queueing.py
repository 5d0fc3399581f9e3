"""Number of servers of a stage, and percentiles of its waiting and service times.

Waiting times are those of the M/M/c queue (Gross, Shortle, Thompson and Harris, "Fundamentals of
Queueing Theory", 4th ed., 2008, section 2.3): Poisson arrivals, c servers, exponential service.
They are overestimated if service times vary less. Service times are lognormal, from their measured
median and 95th percentile.
"""

from __future__ import annotations

import math
from statistics import NormalDist

# Above this utilisation, waiting times are too sensitive to the load to be planned.
MAX_UTILISATION = 0.7
P95 = 0.95


def erlang_c(servers: int, load: float) -> float:
    """Return the probability that a request waits; `load` is in erlangs.

    It is 1 if the load exceeds the servers. Computed by the recursion of Erlang's B formula, which
    is numerically stable.
    """
    if load >= servers:
        return 1.0
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def wait_quantile(servers: int, rate_per_s: float, service_s: float, q: float = P95) -> float:
    """Return the `q` quantile of the waiting time in seconds; infinite if the queue grows.

    P(wait > t) = C exp(-(c / s - rate) t), with C of `erlang_c` and s the mean service time.
    """
    load = rate_per_s * service_s
    if load >= servers:
        return math.inf
    waiting = erlang_c(servers, load)
    if waiting <= 1 - q:
        return 0.0
    return math.log(waiting / (1 - q)) / (servers / service_s - rate_per_s)


def servers_for(rate_per_s: float, service_s: float, budget_s: float, q: float = P95) -> int:
    """Return the fewest servers within MAX_UTILISATION whose wait is at most `budget_s`."""
    servers = max(1, math.ceil(rate_per_s * service_s / MAX_UTILISATION - 1e-9))
    while wait_quantile(servers, rate_per_s, service_s, q) > budget_s:
        servers += 1
    return servers


def quantile_per_part(parts: int, q: float = P95) -> float:
    """Return the quantile that each of `parts` must meet so that the slowest meets `q`.

    A question waits for its slowest shard (J. Dean, L. A. Barroso, "The Tail at Scale", CACM
    56(2), 2013).
    """
    return float(q ** (1 / parts))


def service_quantile(median_s: float, p95_s: float, q: float = P95) -> float:
    """Return the `q` quantile of the lognormal with this median and 95th percentile."""
    return median_s * math.exp(_sigma(median_s, p95_s) * NormalDist().inv_cdf(q))


def service_mean(median_s: float, p95_s: float) -> float:
    """Return the mean in seconds of the lognormal with this median and 95th percentile."""
    return median_s * math.exp(_sigma(median_s, p95_s) ** 2 / 2)


def _sigma(median_s: float, p95_s: float) -> float:
    return math.log(max(p95_s / median_s, 1.0)) / NormalDist().inv_cdf(P95)
