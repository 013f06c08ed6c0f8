"""The search agent that MABRF and SQuAD share."""
