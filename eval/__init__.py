"""JUDGING: replays, tables, plots."""
