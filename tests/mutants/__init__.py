"""Mutants: small faults are put into modules, one at a time, and the tests that reach them should find each."""
