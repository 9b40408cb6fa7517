"""The reference simulator that the compiled one is checked against."""
