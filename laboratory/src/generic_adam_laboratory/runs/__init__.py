"""What an experiment writes while it runs, and how it goes on after a stop."""
