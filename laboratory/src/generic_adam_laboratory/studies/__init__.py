"""One module an experiment: plan, run, claims, figure."""
