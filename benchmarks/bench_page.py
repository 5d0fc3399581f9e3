"""Measure how soon the web page is painted and how much it weighs, in Chromium.

    python -m benchmarks.bench_page [URL] [--loads N] [--question QUESTION]

Loads the first screen, and the address of a question until its answer appears, N times each with an
empty cache, from the endpoint at URL or from a small index served by this process. Prints the
largest contentful paint (https://web.dev/articles/lcp) in seconds since navigation started, and the
size in KiB of all files and replies of the first screen.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from playwright.sync_api import Browser

from benchmarks.smallest import parse_arguments
from tests.chromium import CHROMIUM, open_browser
from tests.serve.api import make_api
from tests.serve.http.page.library import library_service
from tests.serve.http_server import serving
from tests.serve.saved.kept import saved_at

SMALLEST = "--loads 1"

QUESTION = "Does metformin activate AMPK?"
OBSERVE = """window.largest = 0;
new PerformanceObserver((list) => { window.largest = list.getEntries().at(-1).startTime; })
  .observe({type: "largest-contentful-paint", buffered: true});"""
RESOURCES = """() => [...performance.getEntriesByType("navigation"),
    ...performance.getEntriesByType("resource")]
  .map((e) => [e.name, e.initiatorType, e.decodedBodySize])"""
# Kind of resource by initiator type (Resource Timing); imported modules count as scripts.
KINDS = {
    "navigation": "document",
    "fetch": "replies",
    "link": "styles and logo",
    "img": "styles and logo",
}
SETTLE_MS = 300


@dataclass(frozen=True)
class Load:
    """A loaded page: seconds to largest contentful paint, bytes by kind, number of requests."""

    paint_s: float
    size: dict[str, int]
    requests: int


@contextmanager
def endpoint(url: str | None) -> Iterator[str]:
    """Yield the URL of the endpoint to measure; serve a small index if `url` is None."""
    if url:
        yield url.rstrip("/")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        service = library_service(folder)
        api = make_api(service, saved=saved_at(folder))
        with serving(api) as port:
            yield f"http://127.0.0.1:{port}"


def load(browser: Browser, address: str, until: str) -> Load:
    """Open the address in a new profile and wait for the element `until`."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(OBSERVE)
    page = context.new_page()
    page.goto(address)
    page.locator(until).first.wait_for(state="attached", timeout=60_000)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(SETTLE_MS)
    size: Counter[str] = Counter()
    found = page.evaluate(RESOURCES)
    for _, initiator, length in found:
        size[KINDS.get(initiator, "scripts")] += length
    paint = page.evaluate("window.largest") / 1000
    context.close()
    return Load(paint, dict(size), len(found))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?", help="URL of a running endpoint without API keys")
    parser.add_argument("--loads", type=int, default=10, help="loads of each address (default 10)")
    parser.add_argument("--question", default=QUESTION)
    given = parse_arguments(parser, SMALLEST)
    if CHROMIUM is None:
        raise SystemExit("no chromium on PATH; on Debian: apt-get install chromium")
    with endpoint(given.url) as home, open_browser() as browser:
        screens = {
            "first screen": (home, "#system option[value=citeray]"),
            "answer": (f"{home}/?{urlencode({'q': given.question})}", "article.answer"),
        }
        for name, (address, until) in screens.items():
            loads = [load(browser, address, until) for _ in range(given.loads)]
            paints = sorted(one.paint_s for one in loads)
            print(
                f"{name}: largest contentful paint {median(paints):.2f} s in the middle, "
                f"{paints[-1]:.2f} s at most, of {len(paints)} loads"
            )
            if name == "first screen":
                weight = loads[0]
        kinds = ", ".join(f"{kind} {size / 1024:.0f}" for kind, size in weight.size.items())
        total = sum(weight.size.values()) / 1024
        print(f"weight: {total:.0f} KiB in {weight.requests} requests ({kinds})")


if __name__ == "__main__":
    main()
