"""Programs that measure speed and quality; run one with `python -m benchmarks.bench_NAME`."""
