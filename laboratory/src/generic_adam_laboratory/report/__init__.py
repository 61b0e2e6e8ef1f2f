"""Figures and pages made from records and certificates. Nothing here trains or simulates."""
