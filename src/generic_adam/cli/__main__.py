"""``python -m generic_adam.cli`` is ``generic-adam``."""

import sys

from generic_adam.cli import main

sys.exit(main())
