"""Network files: Keima's and Leela Zero's, recognised by their contents, read, written and converted."""
