"""BBQ: the authors' scores, the leaderboard, and the report."""
