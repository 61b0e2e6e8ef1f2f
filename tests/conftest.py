"""Settings every test shares."""

import os
import signal

# Before torch or NumPy start their thread pools: one thread each, as the worker processes fill the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Figures are drawn to files; no test may need a screen.
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("suite"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "suite")

# A shell lets its background jobs ignore Ctrl-C, and tests that send one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
