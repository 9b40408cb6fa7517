"""Acting: policies put to work on clusters."""
