"""Calibration: measure the stages of builds and questions on this machine."""
