"""Calibration of the confidence of answers on held-out questions."""
