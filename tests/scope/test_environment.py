from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope import environment
from hermes_ws.scope.environment import child_environment, is_steering, pack, split, unpack
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.profile_scope import ProfileScope

START = {
    "PATH": "/usr/bin", "HOME": "/home/u", "LANG": "C.UTF-8", "LC_ALL": "C", "TERM": "xterm", "USER": "u",
    "HERMES_HOME": "/h", "NOTIFY_SOCKET": "/run/n", "LISTEN_FDS": "1", "WATCHDOG_USEC": "1", "SSL_CERT_FILE": "/c",
    "CREDENTIALS_DIRECTORY": "/cred",
    "PARENT_KEY": "from-the-service-manager", "SSH_AUTH_SOCK": "/tmp/s", "PWD": "/",
}  # fmt: skip


def test_an_environment_is_taken_apart_into_three() -> None:
    start = split(START)
    assert set(start.base) == {"PATH", "HOME", "LANG", "LC_ALL", "TERM", "USER"}
    assert set(start.parameters) == {
        "HERMES_HOME", "NOTIFY_SOCKET", "LISTEN_FDS", "WATCHDOG_USEC", "SSL_CERT_FILE", "CREDENTIALS_DIRECTORY",
    }  # fmt: skip
    assert set(start.launch_secrets) == {"PARENT_KEY", "SSH_AUTH_SOCK", "PWD"}


def test_what_was_started_with_is_not_printed() -> None:
    assert "from-the-service-manager" not in repr(split(START))
    assert "/h" not in repr(split(START)).replace("/home/u", "")


@given(st.dictionaries(st.text(max_size=8), st.text(st.characters(), max_size=8), max_size=6))
def test_what_is_packed_is_unpacked(environ: dict[str, str]) -> None:
    start = split({**START, **environ, "RAW": "\udcff"})
    assert unpack(pack(start)) == start


def test_the_packed_descriptor_reaches_the_next_program_and_is_closed_there() -> None:
    fd = pack(split(START))
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from hermes_ws.scope.environment import unpack\n"
        "fd = int(sys.argv[1]); start = unpack(fd)\n"
        "assert not {'pydantic', 'trio'} & set(sys.modules), 'serve imports this before all else'\n"
        "print(start.launch_secrets['PARENT_KEY'], os.path.exists(f'/proc/self/fd/{fd}'))"
    )
    try:
        place = str(Path(__file__).parents[2])
        ran = subprocess.run(
            [sys.executable, "-I", "-c", program, str(fd), place],
            env={},
            pass_fds=[fd],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        os.close(fd)
    assert ran.stdout == "from-the-service-manager False\n"


@pytest.mark.parametrize("data", [b"[]", b"{}", b"[1,2,3]", b'[{}, {}, {"A": 1}]', b"", b"\xff"])
def test_another_descriptor_is_refused(data: bytes) -> None:
    fd = os.memfd_create("x")
    os.write(fd, data)
    with pytest.raises(ValueError, match=r".") as refused:
        unpack(fd)
    assert isinstance(refused.value, json.JSONDecodeError | UnicodeDecodeError | ValueError)


def test_a_descriptor_that_holds_more_than_any_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "PACKED_BYTES", 10)
    with pytest.raises(ValueError, match="larger"):
        unpack(pack(split(START)))


def test_a_child_sees_its_own_profiles_value_of_a_shared_name(a: ProfileScope, b: ProfileScope) -> None:
    """Cases ENV-01, ENV-04, ENV-10: the value of the profile acted for; the process environment unchanged."""
    before = dict(os.environ)
    assert child_environment(START, scope=b)["SHARED"] == "value-of-B-0003"
    assert child_environment(START, scope=a, secrets=["SHARED"])["SHARED"] == "value-of-A-0001"
    assert child_environment(START, scope=b)["SHARED"] == "value-of-B-0003"
    assert dict(os.environ) == before


def test_a_name_of_another_profile_is_absent_even_when_it_is_asked_for(b: ProfileScope) -> None:
    """Cases ENV-02, ENV-03, ENV-06, ENV-15: B's policy names ONLY_A, and B does not have it."""
    given = child_environment(START, scope=b)
    assert "ONLY_A" not in given
    assert given["ONLY_B"] == "only-in-B-0004"


def test_nothing_is_passed_on_that_no_policy_names(a: ProfileScope, b: ProfileScope) -> None:
    """Cases ENV-03, ENV-05, ENV-07, ENV-13: built from nothing, so a forgotten argument gives less and not more."""
    for scope in (a, b):
        given = child_environment(START, scope=scope)
        assert not {"PARENT_KEY", "SSH_AUTH_SOCK", "PWD", "NOTIFY_SOCKET", "SSL_CERT_FILE"} & set(given)
    assert "SHARED" not in child_environment(START, scope=a)


def test_what_the_service_manager_passed_belongs_to_the_launch_profile_alone(
    load: Callable[..., ProfileScope], make_home: Callable[..., ProfileHome]
) -> None:
    """Case ENV-05."""
    start = split(START)
    launched = load(make_home("x"), launch_secrets=dict(start.launch_secrets))
    other = load(make_home("y"))
    assert child_environment(START, scope=launched, secrets=["PARENT_KEY"])["PARENT_KEY"] == "from-the-service-manager"
    assert "PARENT_KEY" not in child_environment(START, scope=other, secrets=["PARENT_KEY"])
    assert other.secrets.names() == frozenset()


def test_a_child_lives_in_its_own_home(b: ProfileScope) -> None:
    """Cases TERM-08, IDENT-04, IDENT-11: HOME is the profile's home/, HERMES_HOME the profile's home, always both."""
    given = child_environment(START, scope=b)
    assert given["HERMES_HOME"] == str(b.home.path)
    assert given["HOME"] == str(b.home.user)
    assert Path(given["TMPDIR"]).is_dir()
    inside = [given[name] for name in given if name.startswith("XDG_") or name == "TMPDIR"]
    assert len(inside) == 6
    assert all(Path(path).is_relative_to(b.home.user) for path in inside)
    assert (given["PATH"], given["LC_ALL"], given["USER"]) == ("/usr/bin", "C", "u")


@pytest.mark.parametrize(
    "name",
    ["PATH", "path", "Home", "LD_PRELOAD", "ld_preload", "LC_ALL", "HERMES_HOME", "XDG_CONFIG_HOME", "PYTHONPATH",
     "BASH_ENV", "bash_func_x", "IFS", "NODE_OPTIONS", "TMPDIR"],
)  # fmt: skip
def test_a_secret_that_would_steer_programs_is_refused(a: ProfileScope, name: str) -> None:
    """Case ENV-13: in any mixture of cases."""
    assert is_steering(name)
    with pytest.raises(ProfileUnusable, match=name):
        child_environment(START, scope=a, secrets=[name])


def test_ordinary_names_are_given() -> None:
    assert not any(map(is_steering, ("GITHUB_TOKEN", "MY_PATH", "DATABASE_URL", "HOMEPAGE", "ENVIRONMENT")))
