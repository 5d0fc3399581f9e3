"""Models that were converted for OpenVINO, run on a CPU without torch: they start in a second."""
