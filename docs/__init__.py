"""The documentation, and the tools that build its site, its pictures and a release."""
