"""Cache of models converted for OpenVINO, which run on a CPU without importing torch."""
