"""Data sets: downloaded, checked, read."""
