"""RLDF: bias by round and role, framings, rubric scores, and their reports."""
