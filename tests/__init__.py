"""Tests, laid out like the rooms they test; helpers are imported as ``tests.go.twin``."""
