"""The kinds of networks that can be built and trained."""
