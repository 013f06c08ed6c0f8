"""MABRF's part of BBQ's report: the effect of rephrasing on answers, bias and relevancy."""
