"""A run without any server ends cleanly, and says of each variant why it was skipped and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOWHERE = "127.0.0.1:1"

pytest.importorskip("redis")
pytest.importorskip("pymysql")


def test_what_needs_a_server_is_skipped_with_the_reason(tmp_path):
    environment = {
        **os.environ, "BENCH_REDIS_URL": f"redis://{NOWHERE}", "BENCH_MARIADB_URL": f"mariadb://{NOWHERE}",
        "BENCH_STATE": str(tmp_path / "state"), "BENCH_LOCK": str(tmp_path / "lock"), "PATH": str(tmp_path),
    }  # fmt: skip
    command = [sys.executable, "-c", "from bench.cli import main; main()", "run", "caching.lookup_few", "--no-canary"]
    done = subprocess.run(
        [*command, "--profile", "quick"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 6, done.stderr  # nothing at all was measured
    for variant, server in (("sql_scan", "MARIADB"), ("sql_key", "MARIADB"), ("redis_tcp", "REDIS")):
        line = next(line for line in done.stdout.splitlines() if f" {variant}: " in line)
        assert "SKIPPED" in line
        assert f"BENCH_{server}_URL" in line
        assert "does not answer" in line
        assert f"docker compose up -d {server.lower()}" in line
    assert "3 skipped" in done.stdout
