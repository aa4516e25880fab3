"""Starts the Java virtual machine with Anserini and the companion jar, without output, and returns Java classes.

This module configures the machine before Pyserini does, because Pyserini asks for a module that small Java runtimes
lack, and takes any Java that it finds. If Pyserini has already started a machine, the companion jar is added to it.
"""

from __future__ import annotations

import locale
import os
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pyserini_compneg.lucene.anserini import anserini_jar
from pyserini_compneg.lucene.class_archive import archive_options
from pyserini_compneg.lucene.java_home import find_java, heap_of, memory_is_limited
from pyserini_compneg.support.errors import CompNegError, JvmError
from pyserini_compneg.support.processors import memory_bytes
from pyserini_compneg.support.terminal import captured_output

_VECTOR_MODULE = "jdk.incubator.vector"
_COLLECTOR = "-XX:+UseParallelGC"
"""The garbage collector for indexing. Left out if the user has chosen a collector: Java does not start with two."""

_STACK = "-Xss8m"
"""Java guards all of the main thread's stack but this much, by default 1 MB, and Python from 3.13 on uses more."""

_MOST_YOUNG = 256 << 20
_YOUNG_SHARE = 3
"""The size of the young generation in bytes, and its share of the heap. In a small heap, old objects need the rest."""

_OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")

_OPTIONS = (
    "-Xrs",  # leaves signals to Python, so that an interrupted command can clean up
    "--enable-native-access=ALL-UNNAMED",
    "-Dslf4j.internal.verbosity=WARN",
    "-Dlog4j2.level=WARN",
    "-Dorg.apache.logging.log4j.level=WARN",
    "-Dlog4j2.disable.jmx=true",
    "-XX:+DisplayVMOutputToStderr",  # standard output may be a run
)
_SMALL_INDEX = 256 << 20
"""Of a larger index a search may take so long that Java's slower, better compiler pays."""

_HEAP_FULL = "java.lang.OutOfMemoryError"
_lock = threading.Lock()
_heap_bytes: int | None = None
"""The limit of the heap in bytes; None if other code started the Java machine."""

_one_search = False
"""Whether the machine is to start quickly, and not to run long."""

_started_in: int | None = None
"""The process that uses the machine. A fork has the machine's memory, but not its threads."""


def java_class(name: str) -> Any:
    """Returns a Java class by its name. The Java machine starts on first use.

    Raises:
        JvmError: There is no usable Java or no Anserini, the running machine refuses the companion jar, or this process
            was forked from the process that started the machine.
    """
    _refuse_fork()
    return _java_class(name)


@cache
def _java_class(name: str) -> Any:
    try:
        return _autoclass()(name)
    except JvmError:
        raise
    except Exception as cause:
        if is_java(cause):
            _refuse_full_heap(cause)
        for jar in (anserini_jar(), companion_jar()):
            if not zipfile.is_zipfile(jar):
                raise JvmError("is damaged or cannot be read", where=jar, remedy="install its package again") from None
        raise JvmError(f"{name} cannot be loaded from {anserini_jar()}: {message_of(cause)}") from None


def expect_one_search(index: str | Path) -> None:
    """Has the machine start quickly for one search of a small index; nothing changes if it runs already."""
    global _one_search
    with suppress(OSError):  # the index may be replaced at this moment
        sizes = [file.stat().st_size for file in Path(index).rglob("*")]
        _one_search = bool(sizes) and sum(sizes) < _SMALL_INDEX


def machine_runs() -> bool:
    """Whether a Java machine runs in this process, even if other code started it."""
    config = sys.modules.get("jnius_config")
    return config is not None and bool(config.vm_running)


def _refuse_fork() -> None:
    """Refuses to call Java in a process that was forked after Java had started, where it would hang for ever."""
    if _started_in not in (None, os.getpid()):
        raise JvmError(
            "this process was forked after Java had started, and Java does not survive a fork: start processes with "
            'multiprocessing.get_context("spawn"), or fork before the first index is opened'
        )


def companion_jar() -> Path:
    return _resource("compneg.jar")


def _resource(name: str) -> Path:
    return Path(str(resources.files("pyserini_compneg") / "resources" / name))


def message_of(error: Exception) -> str:
    """The message of a Java exception, in one line, without the name of its class."""
    text = getattr(error, "innermessage", None) or str(error)
    return " ".join(str(text).split())


def is_java(error: Exception) -> bool:
    """Whether an exception comes from Java rather than from a wrong call in Python."""
    return type(error).__name__ == "JavaException"


@contextmanager
def java_errors(error: type[CompNegError], what: str, where: object = "") -> Iterator[None]:
    """Turns Java exceptions into an error of this package. Python's own exceptions pass unchanged.

    A method must be looked up and called in one expression whose arguments are names: ``java.search(lines, hits)``.
    Pyjnius has one object for each method of a class. When the method is looked up, pyjnius stores in that object which
    Java object to call. If ``java.search`` were kept, or an argument computed by a call, another thread could run in
    between and change that Java object.

    The message of the error is ``what``, followed by the message of Java.
    """
    _refuse_fork()
    try:
        yield
    except Exception as cause:  # before Java runs, jnius has no exception class to catch
        if not is_java(cause):
            raise
        _refuse_full_heap(cause)
        raise error(f"{what}: {message_of(cause)}", where=where) from None


def check_heap(size: int) -> None:
    """Checks that Java has room for this many bytes. Without room, pyjnius would end the process."""
    _refuse_fork()
    try:
        _java_class("io.compneg.index.Heap").check(size)
    except Exception:
        with java_errors(JvmError, "Java's heap"):
            raise


def _refuse_full_heap(cause: Exception) -> None:
    """Raises an error if an exception means that Java's heap is full."""
    said = (getattr(cause, "classname", None), *(getattr(cause, "stacktrace", None) or ()))
    if any(str(line).startswith(_HEAP_FULL) for line in said):
        has = f" of {_heap_bytes >> 20} MB" if _heap_bytes else ""
        more = max(2 * (_heap_bytes or 0), 1 << 30) >> 20
        remedy = f"give it more, for example by JAVA_TOOL_OPTIONS=-Xmx{more}m"
        raise JvmError(f"Java's heap{has} is full; {remedy}") from None


@cache
def _autoclass() -> Any:
    global _started_in
    with _lock:
        import jnius_config

        if jnius_config.vm_running:
            _started_in = os.getpid()
            from jnius import autoclass

            _join_running_machine(autoclass)
            return autoclass
        variables = configure_machine(jnius_config)
        _started_in = os.getpid()
        with _environment(variables), captured_output("Java ended this process as it started") as printed:
            try:
                from jnius import autoclass
            except Exception as cause:
                raise JvmError(f"the Java machine did not start: {message_of(cause)} {printed()}".rstrip()) from cause
        return autoclass


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables while the machine starts. From these, jnius knows which Java to take."""
    saved = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _file_names_in_utf8() -> dict[str, str]:
    """Makes Java encode file names in UTF-8, as Python does, even in the locale C. Java has no option for this."""
    differ = sys.getfilesystemencoding() == "utf-8" != locale.getencoding().lower()
    return {"LC_ALL": "C.UTF-8"} if differ else {}


def configure_machine(jnius_config: Any) -> dict[str, str]:
    """Passes our jars and options to the Java machine before it starts, in addition to options set by other code.

    Returns the environment variables with which the machine must be started. They say which Java to take.
    """
    global _heap_bytes
    try:
        os.getcwd()
    except OSError:
        said = "the working folder does not exist any more, and Java does not start without one"
        raise JvmError(said, remedy="change to another folder") from None
    java = find_java()
    inherited = filter(None, os.environ.get("CLASSPATH", "").split(os.pathsep))
    jars = [str(anserini_jar()), str(companion_jar()), *inherited]
    jnius_config.add_classpath(*jars)
    options = [*_OPTIONS, f"-Djava.util.logging.config.file={_resource('logging.properties')}"]
    chosen = [*jnius_config.get_options(), *(os.environ.get(name, "") for name in _OPTION_VARIABLES)]
    if not any("-Xlog" in option for option in chosen):
        options.append("-Xlog:disable")  # the log would go to standard output
    if not any("GC" in option for option in chosen):
        options.append(_COLLECTOR)
    if sys.version_info >= (3, 13) and not any("-Xss" in option for option in chosen):
        options.append(_STACK)
    if java.major >= 23:
        options.append("--sun-misc-unsafe-memory-access=allow")
    quick = _one_search and not any(chosen)
    if quick:
        options.append("-XX:TieredStopAtLevel=1")
    elif java.has_module(_VECTOR_MODULE):
        options.append(f"--add-modules={_VECTOR_MODULE}")
    jnius_config.add_options(*options)
    limited = any(chosen) or memory_is_limited()
    _heap_bytes = heap_of(java, jnius_config.get_options()) if limited else memory_bytes() // 4
    if _COLLECTOR in options:
        jnius_config.add_options(f"-XX:MaxNewSize={min(_MOST_YOUNG, _heap_bytes // _YOUNG_SHARE)}")
    if not any(chosen):
        modules = [option for option in options if option.startswith("--")]
        jnius_config.add_options(*archive_options(java, jars, modules if quick else None))
    return {"JAVA_HOME": str(java.home), "JVM_PATH": str(java.library)} | _file_names_in_utf8()


def _join_running_machine(autoclass: Any) -> None:
    """Adds our jar to a machine that other code started, by the method that Java has for its agents."""
    try:
        autoclass("io.compneg.search.SignedSearcher")
        return
    except Exception as error:
        if not is_java(error):  # a Java exception means that this class is missing
            raise
    try:
        autoclass("io.anserini.search.SimpleImpactSearcher")
        loader = autoclass("java.lang.ClassLoader").getSystemClassLoader()
        from jnius import cast

        autoclass("jdk.internal.loader.ClassLoaders$AppClassLoader", include_protected=True, include_private=True)
        cast("jdk.internal.loader.ClassLoaders$AppClassLoader", loader).appendToClassPathForInstrumentation(
            str(companion_jar())
        )
        autoclass("io.compneg.search.SignedSearcher")
    except Exception as cause:
        raise JvmError(
            "a Java machine is running that does not take the plugin's jar: open an index with this package first, or "
            f"set CLASSPATH={companion_jar()} before Pyserini is imported ({message_of(cause)})"
        ) from cause
