"""The one error this package raises."""


class ScheduleError(ValueError):
    """A schedule that cannot be built or evaluated: one line that says what, where and what was expected."""
