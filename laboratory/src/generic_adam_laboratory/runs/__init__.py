"""Files that an experiment writes while it runs, and its way to go on after a stop."""
