"""Numbered work done by many: threads of this process, or Ray's actors on this machine and others."""
