"""The ground under every folder: errors, command lines, compilation."""

__version__ = "0.1.0"
