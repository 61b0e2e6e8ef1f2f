"""Conditions, rates, bounds, lemmas, certificates and advice for a method (alpha_t, beta_t, theta_t)."""
