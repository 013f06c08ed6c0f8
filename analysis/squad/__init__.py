"""SQuAD v2: the official scores, and the report."""
