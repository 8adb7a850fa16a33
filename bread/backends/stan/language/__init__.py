"""The text of a Stan program: syntax, scopes, dataflow, messages, refusals."""
