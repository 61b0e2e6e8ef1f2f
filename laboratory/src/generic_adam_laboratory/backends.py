"""Places for tasks to run: processes of this machine, workers of a Dask cluster, processes of ``torchrun``.

A task starts from a checkpoint and leaves the next, so that it may be lost: a worker ends with the process
that started it, a signal pauses everything, and the same command goes on.
"""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from generic_adam.errors import RunError
from generic_adam_laboratory.extras import for_training

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

CONNECT_SECONDS: Final = 10
WORKER_SECONDS: Final = 60
"""How long a scheduler may take to answer, and a cluster to have its first worker."""

SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG of prctl(2)


class Paused(KeyboardInterrupt):
    """SIGINT, SIGTERM or SIGHUP, whose number is kept, came: everything stops where its last checkpoint is."""

    def __init__(self, number: int, told: str = "") -> None:
        super().__init__(told or signal.Signals(number).name)
        self.signal = number


@contextmanager
def handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[dict[int, Any]]:
    """Let SIGINT, SIGTERM and SIGHUP come to `handler` in the block; yields the handlers they had.

    What is ignored stays ignored: nohup means it.
    """
    usual = {one: before for one in SIGNALS if (before := signal.getsignal(one)) is not signal.SIG_IGN}
    try:
        for one in usual:
            signal.signal(one, handler)
        yield usual
    finally:
        for one, before in usual.items():
            signal.signal(one, before)


@contextmanager
def pausing() -> Iterator[None]:
    """Let each of the three signals raise `Paused` once in the block; a second one ends the process."""

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        for one in SIGNALS:
            if signal.getsignal(one) is stop:
                signal.signal(one, _end)
        raise Paused(number)

    with handled(stop):
        yield


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    # Not by an exception, which the waiting for worker processes could swallow; those end with this one.
    os._exit(128 + number)


@dataclass(frozen=True)
class Pool:
    """A place for tasks: `submit` takes a function and its arguments, `completed` gives futures as they finish.

    As many as `width` run at a time.
    """

    submit: Callable[..., Any]
    completed: Callable[[Sequence[Any]], Iterable[Any]]
    width: int = 1


@contextmanager
def local_pool(workers: int) -> Iterator[Pool]:
    """Worker processes on this machine, which end when this process does, however it ends.

    RunError tells that one was killed.
    """
    if sys.platform != "win32":
        # The helper that multiprocessing starts beside the workers ignores all signals of a terminal but one.
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        resource_tracker.ensure_running()
        signal.signal(signal.SIGHUP, before)
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, context, initializer=_begin_worker, initargs=(os.getpid(),))
    try:
        yield Pool(executor.submit, as_completed, workers)
    except BaseException as error:
        # A signal, or a task that failed: to wait for what is under way would look like hanging, and it is
        # repeated from the last checkpoint anyway. The futures are left to the executor, which tells them
        # that their processes are gone and stumbles over those that were cancelled.
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        if isinstance(error, BrokenProcessPool):
            raise RunError(
                "a worker process was killed, perhaps for want of memory (fewer --jobs need less); "
                "the same command goes on from the last checkpoints"
            ) from error
        raise
    finally:
        executor.shutdown()


def _begin_worker(parent: int) -> None:
    """Tie a worker to the process that started it, and leave signals to that process."""
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)  # they reach all processes of a terminal
    if sys.platform == "linux":
        # Without this a killed parent would leave workers that go on writing into the directory; and one
        # that was killed before this line will send no signal any more.
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


@contextmanager
def dask_pool(address: str, tell: Callable[[str], None] = lambda _: None) -> Iterator[Pool]:
    """Connect to the workers of a Dask cluster; they need this package, and the data and --out under the same paths.

    Dask sends pickled objects both ways, so the scheduler has to be one you trust; `tell` is told if there is a wait
    for the first worker. RunError if the scheduler does not answer or goes away, or its workers keep dying.
    """
    with for_training():
        from distributed import CancelledError, Client, KilledWorker
        from distributed import as_completed as dask_as_completed
        from distributed.comm.addressing import parse_address
        from distributed.comm.core import CommClosedError
        from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(address)
        get_backend(scheme).get_address_host(place)  # a Client for what is no address prints a traceback later
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise RunError(
            f"no Dask scheduler answers at {address!r} within {CONNECT_SECONDS} s, expected tcp://HOST:PORT "
            f"({_short(error)})"
        ) from error
    with _without_its_log(), closing(client), client.as_current():
        submitted: list[Any] = []

        def threads() -> int:
            cores: Any = client.nthreads()  # a coroutine only for asynchronous clients
            return sum(cores.values())

        def submit(function: Callable[..., object], *arguments: object) -> object:
            # Not pure: what a task does depends on the checkpoint that it finds.
            submitted.append(client.submit(function, *arguments, pure=False))
            return submitted[-1]

        if threads() == 0:  # tasks would wait, and look as if they ran
            tell(f"the Dask cluster has no worker yet: waiting for one, at most {WORKER_SECONDS} s")
            try:
                client.wait_for_workers(1, timeout=WORKER_SECONDS)
            except TimeoutError as error:
                raise RunError(
                    f"the Dask cluster at {address} has had no worker for {WORKER_SECONDS} s, expected at least one"
                ) from error
        try:
            yield Pool(submit, dask_as_completed, threads())
        except KilledWorker as error:
            raise RunError(
                f"the workers of the Dask cluster die on the same task, perhaps for want of memory ({_short(error)})"
            ) from error
        except (CancelledError, CommClosedError) as error:
            raise RunError(
                f"the Dask scheduler at {address} is gone ({_short(error)}); the same command goes on once it is back"
            ) from error
        finally:  # what is not finished must not go on running on other people's machines
            with suppress(OSError, TimeoutError):
                client.cancel([future for future in submitted if not future.done()])


@contextmanager
def _without_its_log() -> Iterator[None]:
    """Keep the client of Dask from logging, with tracebacks, what is told here in a line."""
    log = logging.getLogger("distributed.client")
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120]


@dataclass(frozen=True)
class Group:
    """The processes that share one run, as ``torchrun`` starts them; alone, everything here does nothing."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """True in the process that writes the files and talks to the user."""
        return self.rank == 0

    def batches(self, order: torch.Tensor, batch_size: int) -> Iterator[tuple[torch.Tensor, int]]:
        """Cut this process's share out of each batch, with the size of the whole batch.

        The batches are those of a single process. A last batch with fewer samples than processes is left out,
        on all of them, because batch normalisation of nothing is undefined.
        """
        for batch in order.split(batch_size):
            if len(batch) >= self.size:
                yield batch.tensor_split(self.size)[self.rank], len(batch)

    def from_first(self, make: Callable[[], T]) -> T:
        """Call `make` on the first process and give its value to all: they need not see the same disk."""
        if self.size == 1:
            return make()
        from torch import distributed

        shared = [make() if self.is_first else None]
        distributed.broadcast_object_list(shared)
        return shared[0]  # pyright: ignore[reportReturnType]

    def mean(self, value: torch.Tensor) -> torch.Tensor:
        """Average a tensor over the processes."""
        if self.size > 1:
            from torch import distributed

            distributed.all_reduce(value)
            value /= self.size
        return value


ALONE: Final = Group()
"""A single process."""


@contextmanager
def process_group(device: str) -> Iterator[Group]:
    """Join the processes that ``torchrun`` started, over gloo or nccl with a GPU each; without any, yield `ALONE`."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    with for_training():
        import torch
        from torch import distributed

    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield Group(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()


def group_pool(group: Group) -> Pool:
    """Run tasks in this process itself, one after the other, together with the other processes of its group."""

    def submit(function: Callable[..., Any], *arguments: object) -> SimpleNamespace:
        # It runs when its result is asked for, so that each is told of as soon as it is done.
        return SimpleNamespace(result=partial(function, *arguments, group))

    return Pool(submit, iter)
