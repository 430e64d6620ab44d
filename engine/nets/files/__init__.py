"""Network files: ours and Leela Zero's, recognised by their contents, read, written and converted."""
