"""What Parley stands on: every package of every extra, its licence, and what is known against it.

python -m tests.dependencies licences            the list, and whether each licence is one we accept
python -m tests.dependencies licences --write    the same into docs/licences.md
python -m tests.dependencies audit               known vulnerabilities of the pinned versions, by the OSV database
"""
