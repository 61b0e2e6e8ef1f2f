"""The paper's experiments, each with its records: problems, networks, data, training, sweeps."""
