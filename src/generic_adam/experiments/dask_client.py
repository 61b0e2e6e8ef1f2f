"""The way to a Dask cluster, for all experiments that can run on one.

Dask sends pickled objects both ways, so the scheduler has to be one you trust.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from generic_adam.extras import from_extra

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10


class ClusterError(ValueError):
    """A cluster that cannot be used; the message is one line."""


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """A client of a cluster that has workers.

    Args:
        address: of the scheduler, "tcp://HOST:PORT".

    Raises:
        ClusterError: the scheduler does not answer, it has no worker, or its workers keep dying.
    """
    with from_extra("experiments"):
        from distributed import Client, KilledWorker

    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r} within {CONNECT_SECONDS} s, expected tcp://HOST:PORT "
            f"({' '.join(str(error).split())[:120]})"
        ) from error
    with closing(client), client.as_current():
        if threads_of(client) == 0:  # tasks would wait for ever, and look as if they ran
            raise ClusterError("the Dask cluster has no worker, expected at least one")
        try:
            yield client
        except KilledWorker as error:
            raise ClusterError(
                "the workers of the Dask cluster die on the same task, perhaps for want of memory "
                f"({' '.join(str(error).split())[:120]})"
            ) from error


def threads_of(client: Client) -> int:
    """How many tasks the workers can run at a time."""
    cores: Any = client.nthreads()  # a coroutine only for asynchronous clients
    return sum(cores.values())
