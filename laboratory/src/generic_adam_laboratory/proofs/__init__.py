"""The steps of the proofs as functions that evaluate both of their sides."""
