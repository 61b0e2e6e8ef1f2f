"""Labelled set-ups: what the tools of the library have to find, and what they have to leave alone."""
