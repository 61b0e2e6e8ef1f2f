"""Inner loops compiled by Numba and kept on disk, without fast-math and whatever the state of the disk."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from generic_adam.extras import from_extra

with from_extra("experiments"):
    from numba import njit
    from numba.core.caching import FunctionCache, IndexDataCacheFile


class _SealedFiles(IndexDataCacheFile):
    """Numba's cache files, each behind its SHA-256: damaged machine code would be run as it is."""

    def _save_data(self, name: str, data: object) -> None:
        payload = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(payload).digest() + payload)

    def _load_data(self, name: str) -> object:
        raw = Path(self._data_path(name)).read_bytes()
        digest, payload = raw[:32], raw[32:]
        if hashlib.sha256(payload).digest() != digest:
            raise OSError(f"{name} is damaged")  # numba takes it for missing, and compiles
        return pickle.loads(payload)  # noqa: S301 - machine code of ours, as numba keeps it


class _ForgivingCache(FunctionCache):
    """Numba's cache, for which a full, read-only or damaged disk is no reason to stop: it compiles again."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        stamp = self._cache_file._source_stamp
        self._cache_file = _SealedFiles(self.cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - unpickling damaged bytes raises anything
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: object, data: object) -> None:
        with suppress(Exception):
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call, or load what an earlier process compiled."""
    # error_model="numpy": a division by zero is inf or nan, as in NumPy; the test for it would stop
    # vectorisation.
    dispatcher: Any = njit(nogil=True, error_model="numpy", fastmath=False)(function)
    with suppress(RuntimeError):  # no place for a cache: every process compiles
        dispatcher._cache = _ForgivingCache(function)
    return dispatcher
