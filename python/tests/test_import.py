"""Importing, and that what is typed is what is there."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import pathlib
import resource
import subprocess
import sys

import pytest

import hourglass
from hourglass import _hourglass

PACKAGE = pathlib.Path(hourglass.__file__).parent
STUBS = ast.parse((PACKAGE / "_hourglass.pyi").read_text())
MODULES = sorted(hourglass._MODULES)


def test_importing_takes_under_100_ms() -> None:
    """Issue 8, "Speed"; the best of ten, without what starting Python takes. Of processor time, as the kernel counts it:
    an import waits for nothing but its files, and others may have the CPU meanwhile."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def took(program: str) -> float:
        before = used()
        subprocess.run([sys.executable, "-I", "-c", program], check=True)
        return used() - before

    with_it = min(took("import hourglass") for _ in range(10))
    without = min(took("pass") for _ in range(10))
    assert with_it - without < 0.1, (with_it, without)


def test_importing_starts_nothing() -> None:
    program = """
import os, sys
before = len(os.listdir("/proc/self/task"))
import hourglass
assert len(os.listdir("/proc/self/task")) == before
heavy = {"numpy", "pandas", "polars", "matplotlib", "json", "threading", "asyncio"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-I", "-c", program], check=True)


def test_every_name_that_is_offered_is_there() -> None:
    for name in hourglass.__all__:
        assert getattr(hourglass, name) is not None
        assert name in dir(hourglass)
    with pytest.raises(AttributeError, match="no attribute 'sundial'"):
        hourglass.sundial  # noqa: B018
    for name in MODULES:
        module = importlib.import_module(f"hourglass.{name}")
        assert module.__doc__, name
        assert all(hasattr(module, offered) for offered in module.__all__), name


def public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def typed(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    return {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def constants(body: list[ast.stmt]) -> set[str]:
    """Names with a type; those that only stand for a type have a value instead."""
    given = (node for node in body if isinstance(node, ast.AnnAssign))
    return {node.target.id for node in given if isinstance(node.target, ast.Name)}


def test_the_stubs_have_every_name_and_no_other() -> None:
    there = typed(STUBS.body)
    assert public([*there, *constants(STUBS.body)]) == public(dir(_hourglass))
    for name, node in there.items():
        found = getattr(_hourglass, name)
        if isinstance(node, ast.ClassDef):
            assert public(list(typed(node.body))) == public(list(vars(found))), name


def parameters(node: ast.FunctionDef) -> list[str]:
    given = node.args
    names = [argument.arg for argument in given.posonlyargs + given.args + given.kwonlyargs]
    return [name for name in names if name not in ("self", "cls")]


def test_the_stubs_have_every_parameter() -> None:
    def compare(where: str, node: ast.FunctionDef, found: object) -> None:
        signature = inspect.signature(found)  # type: ignore[arg-type]
        names = [name for name in signature.parameters if name not in ("self", "cls")]
        assert parameters(node) == names, where
        defaults = [p.default for p in signature.parameters.values() if p.default is not p.empty]
        stubbed = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        assert [ast.literal_eval(default) for default in stubbed] == defaults, where

    for name, node in typed(STUBS.body).items():
        found = getattr(_hourglass, name)
        if isinstance(node, ast.FunctionDef):
            compare(name, node, found)
            continue
        assert isinstance(node, ast.ClassDef)
        for method, inner in typed(node.body).items():
            assert isinstance(inner, ast.FunctionDef)
            is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in inner.decorator_list)
            if is_property:
                assert inspect.isdatadescriptor(getattr(found, method)), f"{name}.{method}"
            elif method == "__new__":
                compare(name, inner, found)
            elif not method.startswith("__"):
                compare(f"{name}.{method}", inner, getattr(found, method))


def test_everything_is_documented() -> None:
    for name in public(dir(_hourglass)):
        found = getattr(_hourglass, name)
        if callable(found):
            assert found.__doc__, name


def test_mypy_finds_the_package_typed() -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip(f"no mypy [lacks: {sys.executable} -m mypy --version]")
    # Whether others' packages are typed, or there, is not this one's.
    others = ["--ignore-missing-imports", "--disable-error-code=import-untyped"]
    check = ["-m", "mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null", *others, "-p", "hourglass"]
    done = subprocess.run([sys.executable, *check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_work(name: str) -> None:
    module = importlib.import_module(f"hourglass.{name}")
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_a_second_interpreter_is_refused() -> None:
    """Signals, timers' functions and classes are one interpreter's."""
    modules = ("_interpreters", "_xxsubinterpreters")
    module = next((name for name in modules if importlib.util.find_spec(name) is not None), None)
    if module is None:
        pytest.skip(f"no interpreters [lacks: {sys.executable} -c 'import {modules[0]}' || {sys.executable} -c 'import {modules[1]}']")
    within = """
try:
    import hourglass
except ImportError as refused:
    print("refused:", refused, flush=True)
"""
    program = f"""
import faulthandler, os
faulthandler.dump_traceback_later(60, exit=True)
import {module} as interpreters
import hourglass
try:
    # One that shares the lock, so that nobody but hourglass refuses.
    other = interpreters.create("legacy")
except TypeError:
    other = interpreters.create()
interpreters.run_string(other, {within!r})
assert hourglass.clock.now_ns() > 0
# An interpreter that is left keeps this Python from ending.
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # From 3.12 on Python itself refuses what does not say that it serves several.
    assert done.stdout.startswith("refused: ") and "hourglass" in done.stdout, done.stdout
