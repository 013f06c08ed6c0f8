"""Parley's dependencies: every package of every extra, its licence and its known vulnerabilities.

python -m tests.dependencies licences            every package, and whether its licence is accepted
python -m tests.dependencies licences --write    also write docs/licences.md
python -m tests.dependencies audit               known vulnerabilities of the pinned versions (OSV database)
"""
