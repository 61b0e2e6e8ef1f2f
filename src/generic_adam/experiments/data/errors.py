"""The one error of this package."""


class DataError(ValueError):
    """A data set is missing, damaged or not what it says it is; the message is one line."""
