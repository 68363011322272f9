"""What is set for the allocators: nothing a user has set, and no library without such a setting is asked."""

import ctypes
import os
from types import SimpleNamespace

from ttf.memory import keep_freed_arrays, keep_freed_memory

JEMALLOC = "_RJEM_MALLOC_CONF"


def test_what_a_user_sets_stands(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())  # a C library without mallopt
    monkeypatch.setenv(JEMALLOC, "dirty_decay_ms:0")
    keep_freed_memory()
    assert os.environ[JEMALLOC] == "dirty_decay_ms:0"


def test_both_allocators_are_told(monkeypatch):
    asked = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=lambda *what: asked.append(what)))
    monkeypatch.setenv(JEMALLOC, "")
    monkeypatch.delenv(JEMALLOC)
    keep_freed_memory()
    assert os.environ[JEMALLOC].startswith("dirty_decay_ms:")
    assert [parameter for parameter, _ in asked] == [-3, -1]


def test_of_arrays_the_c_library_alone_is_told(monkeypatch):
    asked = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=lambda *what: asked.append(what)))
    monkeypatch.setenv(JEMALLOC, "")
    monkeypatch.delenv(JEMALLOC)
    keep_freed_arrays()
    assert JEMALLOC not in os.environ
    assert [parameter for parameter, _ in asked] == [-3, -1]
