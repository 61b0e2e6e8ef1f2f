"""The data sets of the experiments: reading the standard formats, finding them on disk, fetching them."""

from generic_adam.experiments.data.dataset import Dataset, load
from generic_adam.experiments.data.errors import DataError

__all__ = ["DataError", "Dataset", "load"]
