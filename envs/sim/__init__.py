"""The compiled simulator."""
