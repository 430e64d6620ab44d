"""Tests, laid out like the rooms they test; helpers are imported as ``bench.reliability.rules_twin``."""
