"""The OpenAPI document is valid, and the server keeps it: schemathesis makes requests from it and checks every answer."""

import json
import os
import random
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from all_pages import fill
from windlass_server import Server

HERE = Path(__file__).parent

# How many requests are made from chance for each operation, beside those that cover each part of its schema.
EXAMPLES = 3
TESTS_MAX_S = 400


@pytest.fixture
def server(folder):
    """It believes what the requests say about the address they come from."""
    from conftest import databases

    server = Server(folder / "server", databases.pop() if databases else None, 'trusted_proxies = ["127.0.0.1"]\n')
    server.start()
    yield server
    server.stop()


def document(server, token):
    request = urllib.request.Request(f"{server.origin}/api/v1/openapi.json")
    request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_the_document_is_valid(server):
    found = document(server, server.token("reader", "view"))
    assert found["openapi"].startswith("3.1.")
    validate(found)


def test_the_server_keeps_the_document(server):
    fill(server)
    token = server.token("tests", "admin")
    written = server.folder / "openapi.json"
    written.write_text(json.dumps(document(server, token)))
    seed = os.environ.get("WINDLASS_SEED") or str(random.randrange(1_000_000))
    print(f"WINDLASS_SEED={seed}")
    command = [
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"),
        "run", str(written), "--url", f"{server.origin}",
        "--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES),
        "--seed", seed, "--generation-database", "none", "--no-color",
    ]  # fmt: skip
    environment = {
        **os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(HERE), "API_TOKEN": token,
    }  # fmt: skip
    done = subprocess.run(
        command, cwd=server.folder, env=environment, capture_output=True, text=True, timeout=TESTS_MAX_S,
    )
    assert done.returncode == 0, f"seed {seed}\n{done.stdout}\n{done.stderr}"
    assert "mostly returned 429" not in done.stdout, done.stdout
    assert " Tested: " in done.stdout, done.stdout
