"""Benchmarks: speed, and conformance with what others have published."""
