"""How the two allocators of a process, the C library's and that of Polars, deal with memory that is given back."""

import ctypes
import os

# Parameters of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> None:
    """Let freed memory be used again rather than be given back to the system and asked for anew; call before Polars.

    For a process that reads one large block after another: the system clears every page that it gives out. What a user
    sets for the allocator of Polars (jemalloc) stands.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:3000,muzzy_decay_ms:-1")
    keep_freed_arrays()


def keep_freed_arrays() -> None:
    """The same of the C library's allocator alone, which gives NumPy its arrays; only if it is glibc's."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_MMAP_THRESHOLD, 1 << 25)  # the largest that glibc allows
        library.mallopt(_TRIM_THRESHOLD, 1 << 30)
        # Every thread would keep memory of its own, in heaps that hold three blocks of a table: 0.13 GB more.
        library.mallopt(_ARENA_MAX, 1)
