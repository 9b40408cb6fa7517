"""LEARNING: the trainer goes here."""
