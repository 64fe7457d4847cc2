from __future__ import annotations

import pytest

from hermes_ws.scope.plain import plainly_no_secret


@pytest.mark.parametrize(
    "value",
    [
        "12345678", "-1.5", "1_000_000", "3.14e-10", "true", "DISABLED",
        "production", "eu-west", "my_database",
        "localhost:11434", "db.internal.example", "api.example.com:8443", "192.168.10.20", "10.0.0.1:5432",
        "/usr/local/bin", "~/projects/thing", "./relative/path", "/usr/bin:/usr/local/bin:/opt/x-1.2/bin",
        "http://127.0.0.1:11434/v1", "https://api.example.com/v1/models", "redis://cache:6379/0", "http://[::1]:8080",
    ],
)  # fmt: skip
def test_ordinary_settings_stay_readable(value: str) -> None:
    assert plainly_no_secret(value)


@pytest.mark.parametrize(
    "value",
    [
        "hunter2hunter2", "correcthorsebatterystaple", "Passw0rd!", "p@ssword", "word with spaces",
        "sk-proj-abc123def456", "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "/9j4AAQSkZJRgABAQAAAQ==", "/x8Kq2mPz7Rt5Yw3Nb9Vc1Ld6", "AKIAIOSFODNN7EXAMPLE",
        "postgres://user:pass@db.example/x", "https://token@host.example/", "https://example.com/?key=abcdefgh",
        "https://hooks.example.com/services/T0AB12CD/B0EF34GH/xK9mQ2pL7vR4tY8wZ1nB",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl", "abc123def456ghi789.example.com",
        "user:12345678", "http://[::1", "http://x:99999999/", "-----BEGIN KEY-----\nabc", "", "aaaaaaaaaaaaaaaa",
    ],
)  # fmt: skip
def test_what_may_be_a_secret_is_none_of_them(value: str) -> None:
    assert not plainly_no_secret(value)
