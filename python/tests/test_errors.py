"""Exceptions: what a program can look at, and what Python expects of them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import hourglass
from hourglass import errors

CLASSES = [getattr(errors, name) for name in errors.__all__ if name != "Error"]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_is_an_error_and_a_builtin(kind: type[errors.Error]) -> None:
    raised = kind("the text", 7, "sudo something")
    assert isinstance(raised, hourglass.Error)
    assert isinstance(raised, (ValueError, OSError, RuntimeError))
    assert (raised.text, raised.errno, raised.remedy) == ("the text", 7, "sudo something")
    assert str(raised) == "the text; sudo something" and str(kind("alone")) == "alone"
    assert kind("x").errno is None and kind("x").remedy is None
    again = pickle.loads(pickle.dumps(raised))
    assert (type(again), again.text, again.errno, again.remedy) == (kind, "the text", 7, "sudo something")


def test_kinds_are_words_of_their_own() -> None:
    words = {kind.kind for kind in CLASSES}
    assert len(words) == len(CLASSES) and "other" not in words
    for kind in CLASSES:
        assert type(errors._of_kind(kind.kind, "text", None, None)) is kind
    assert type(errors._of_kind("of a later version", "text", None, None)) is errors.Error


def test_a_missing_privilege_names_the_line_that_grants_it() -> None:
    """As nobody, in a process of its own: real-time policies are refused there."""
    program = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
try:
    os.setuid(65534)
except OSError:
    pass  # no privilege to lose, or no such user in this namespace
import hourglass
try:
    with hourglass.reserve.Scheduled("FIFO:10"):
        sys.exit(3)
except PermissionError as refused:
    assert isinstance(refused, hourglass.errors.PermissionDeniedError), refused
    assert refused.errno in (1, 13) and "setcap" in str(refused), str(refused)
"""
    # Imported before the process becomes nobody, who may not read where it is installed.
    program = "import hourglass, hourglass.reserve\n" + program
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("this process keeps a privilege that it cannot give up")
    assert done.returncode == 0, done.stderr
