"""Models of other frameworks, each behind the contract of a Python model."""
