"""MABRF's part of BBQ's report: what rephrasing did to answers, bias and relevancy."""
