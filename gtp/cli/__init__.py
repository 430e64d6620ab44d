"""The command `keima` and its subcommands."""
