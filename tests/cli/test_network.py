"""Nothing of orthocal uses the network, but for what the user names."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import orthocal as oc

PACKAGE = Path(oc.__file__).parent
#: modules whose purpose is the network; the addresses of a Dask scheduler and of UM-Bridge servers are the user's
NETWORK = [
    *("socket", "socketserver", "ssl", "http", "urllib", "ftplib", "smtplib", "poplib", "imaplib", "telnetlib"),
    *("xmlrpc", "webbrowser", "requests", "httpx", "aiohttp", "urllib3", "websockets", "paramiko", "fsspec", "pooch"),
    "distributed",
]
NAMED = {
    "cli/serving.py": ["aiohttp", "aiohttp"],
    "execution/work/workers.py": ["distributed"],
    "execution/servers/servers.py": ["socket", "http", "urllib"],
}

# a connection of any kind but through a file of this machine is an event of Python's
WATCHED = """
import sys

def watch(event, given):
    if event in ("socket.connect", "socket.bind", "socket.sendto") and given[0].family.name != "AF_UNIX":
        print(event, given[1], file=sys.stderr)
    elif event.startswith(("socket.get", "urllib.", "http.")) and event not in ("socket.gethostname",):
        print(event, given, file=sys.stderr)

sys.addaudithook(watch)
if len(sys.argv) == 1:
    import urllib.request
    try:
        urllib.request.urlopen("http://127.0.0.1:9/")
    except OSError:
        pass
else:
    from orthocal.cli import main
    main()
"""


def test_no_module_imports_what_talks_to_others():
    names = "|".join(NETWORK)
    talks = re.compile(rf"^\s*(?:from|import) ({names})\b|import_module\(\"({names})\"\)", re.MULTILINE)
    paths = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert len(paths) > 200
    found = {name: ["".join(one) for one in talks.findall(text)] for name, text in paths.items()}
    assert {name: modules for name, modules in found.items() if modules} == NAMED


def test_no_page_loads_from_elsewhere():
    for path in PACKAGE.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert 'src="http' not in text, path
        assert "url(" not in text, path
        assert "<script" not in text, path
        assert "<link" not in text, path


def connections(*words, folder):
    run = subprocess.run(
        [sys.executable, "-c", WATCHED, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stderr


@pytest.mark.slow
def test_a_calibration_with_its_report_connects_to_nobody(small):
    assert connections("run", "problem.toml", folder=small) == ""


def test_a_connection_is_seen(tmp_path):
    assert "socket.connect ('127.0.0.1', 9)" in connections(folder=tmp_path)
