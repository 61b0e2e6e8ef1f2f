"""The one line said where what trains networks is not installed."""

from functools import partial

from generic_adam.extras import LABORATORY, from_extra

for_training = partial(from_extra, "training", distribution=LABORATORY)
"""Return the context in which PyTorch and what comes with the extra "training" are imported."""
