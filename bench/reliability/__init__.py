"""Whether it stands what nobody should send."""
