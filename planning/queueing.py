"""How many servers a stage needs, and how late its slow requests are.

Waiting is that of the M/M/c queue (D. Gross, J. Shortle, J. Thompson, C. Harris,
"Fundamentals of Queueing Theory", 4th ed., 2008, section 2.3): Poisson arrivals, c servers,
exponential service, so that waits are over- rather than underestimated where service varies
less. How long service itself takes at a percentile is lognormal, from its measured median
and 95th percentile.
"""

from __future__ import annotations

import math
from statistics import NormalDist

# Above it queues grow faster than any planner can promise for.
MAX_UTILISATION = 0.7
P95 = 0.95


def erlang_c(servers: int, load: float) -> float:
    """The probability that a request must wait; `load` is arrivals x service time (erlangs).

    1 where the load is more than the servers can do. By the recursion of Erlang's B, which
    neither overflows nor cancels.
    """
    if load >= servers:
        return 1.0
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def wait_quantile(servers: int, rate_per_s: float, service_s: float, q: float = P95) -> float:
    """Seconds that the share `q` of requests wait at most; infinite where they pile up.

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
    """The fewest servers of which at most MAX_UTILISATION are busy and `wait_quantile` fits."""
    servers = max(1, math.ceil(rate_per_s * service_s / MAX_UTILISATION - 1e-9))
    while wait_quantile(servers, rate_per_s, service_s, q) > budget_s:
        servers += 1
    return servers


def slowest_of(parts: int, q: float = P95) -> float:
    """The quantile that each of `parts` must keep so that all of them keep `q` together.

    A question waits for its slowest shard (J. Dean, L. A. Barroso, "The Tail at Scale", CACM
    56(2), 2013).
    """
    return float(q ** (1 / parts))


def service_quantile(median_s: float, p95_s: float, q: float = P95) -> float:
    """The `q` quantile of the lognormal with this median and 95th percentile."""
    return median_s * math.exp(_sigma(median_s, p95_s) * NormalDist().inv_cdf(q))


def service_mean(median_s: float, p95_s: float) -> float:
    """Mean service time in seconds of the lognormal with this median and 95th percentile."""
    return median_s * math.exp(_sigma(median_s, p95_s) ** 2 / 2)


def _sigma(median_s: float, p95_s: float) -> float:
    return math.log(max(p95_s / median_s, 1.0)) / NormalDist().inv_cdf(P95)
