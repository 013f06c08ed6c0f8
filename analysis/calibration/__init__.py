"""Calibration: false-positive rate and power of our tests, on simulated studies with a planted effect."""
