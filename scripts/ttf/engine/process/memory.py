"""Configure how the two allocators of a process, the C library's and that of Polars, handle freed memory."""

import ctypes
import os

# Parameters of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> None:
    """Reuse freed memory rather than return it to the system; call before Polars is imported.

    This saves time in a process that reads one large block after another, because the system clears every new page.
    Without a threshold Polars also reuses blocks above 8 MB, such as a column of a million numbers.
    A user's own setting for the allocator of Polars (jemalloc) is not changed.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "narenas:2,dirty_decay_ms:3000,muzzy_decay_ms:-1,oversize_threshold:0")
    keep_freed_arrays()


def keep_freed_arrays() -> None:
    """Reuse freed memory in the C library's allocator alone, which serves NumPy; only if it is glibc's."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_MMAP_THRESHOLD, 1 << 25)  # the largest that glibc allows
        library.mallopt(_TRIM_THRESHOLD, 1 << 30)
        # Otherwise every thread keeps its own heap, which holds three blocks of a table: 0.13 GB more.
        library.mallopt(_ARENA_MAX, 1)
