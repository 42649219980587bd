"""That nothing but the guarded fetch connects to hosts that a user can name: every way out of this process, file by file."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for package in ("handlers", "platforms", "storage") for path in (ROOT / package).rglob("*.py"))

# Modules with which one connects, and functions of other modules that do it too.
NETWORK = {"socket", "ssl", "http.client", "http.server", "urllib.request", "urllib3", "requests", "httpx", "aiohttp", "minio",
           "ftplib", "smtplib", "imaplib", "poplib", "telnetlib", "xmlrpc", "socketserver", "websockets", "pycurl", "boto3",
           "botocore", "httpcore", "h11", "trio", "tornado", "paramiko", "_socket"}
FUNCTIONS = {"open_connection", "create_connection", "create_datagram_endpoint", "sock_connect", "connect_tcp", "connect_udp",
             "getaddrinfo", "gethostbyname", "urlopen", "urlretrieve"}
PROGRAMS = {"subprocess", "multiprocessing", "pty"}
PROGRAM_FUNCTIONS = {"system", "popen", "posix_spawn", "posix_spawnp", "execv", "execve", "execvp", "create_subprocess_exec",
                     "create_subprocess_shell"}

GUARD = {"storage/addresses.py", "storage/fetch.py", "storage/wire.py"}
OPERATORS = {
    "storage/objects.py": "the object store, by the settings",
    "storage/credentials.py": "the operator's cloud, for keys to the store",
    "storage/embedded.py": "servers that this machine runs itself",
    "handlers/up.py": "processes that it started itself, on loopback",
    "handlers/doctor.py": "the operator's own addresses, by the settings",
    "handlers/checkups.py": "more of those",
    "handlers/prompt.py": "the name of an option, for those who have connected to us",
    "platforms/worker.py": "a pair of sockets within the process",
    "storage/children.py": "pairs of sockets to the process that starts others",
    "storage/starter.py": "the other ends of those",
}
STARTS = {
    "storage/children.py": "the next",
    "storage/starter.py": "Python files of ours, which read media",
    "storage/embedded.py": "the servers of the extra `embedded`",
    "handlers/up.py": "commands of ours",
}


NODES = {str(path.relative_to(ROOT)): list(ast.walk(ast.parse(path.read_text()))) for path in FILES}


def found(file, modules, functions):
    """What a file imports of `modules`, and which of `functions` it names."""
    for node in NODES[file]:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            if node.attr in functions:
                yield node.attr
            continue
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield from {".".join(parts[:length]) for length in range(1, len(parts) + 1)} & modules
            if parts[-1] in functions:
                yield parts[-1]


def builders(name):
    """The files in which something of this name is called."""
    return {file for file, nodes in NODES.items() for node in nodes
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", None)) == name}


@pytest.mark.parametrize("file", [file for file in NODES if file not in {*GUARD, *OPERATORS}])
def test_nothing_else_knows_how_to_connect(file):
    assert set(found(file, NETWORK, FUNCTIONS)) == set()


@pytest.mark.parametrize("file", [file for file in NODES if file not in STARTS])
def test_nothing_else_starts_programs_that_might(file):
    assert set(found(file, PROGRAMS, PROGRAM_FUNCTIONS)) == set()


def test_the_tables_hold_no_file_that_needs_no_exception():
    for name in (*GUARD, *OPERATORS):
        assert set(found(name, NETWORK, FUNCTIONS)), name
    for name in STARTS:
        assert set(found(name, PROGRAMS, PROGRAM_FUNCTIONS)), name


def test_only_the_fetch_uses_what_connects():
    imports = {file for file, nodes in NODES.items() for node in nodes
               if isinstance(node, ast.ImportFrom) and node.module == "storage.addresses"}
    assert imports == {"storage/fetch.py"}


def test_who_builds_a_way_out_takes_its_address_from_the_settings():
    assert builders("Fetcher") == {"handlers/services.py", "handlers/checkups.py", "platforms/chat.py"}
    assert builders("Objects") == {"handlers/stores.py", "storage/embedded.py"}
    assert builders("PoolManager") | builders("Minio") <= {"storage/objects.py", "storage/credentials.py", "handlers/doctor.py",
                                                            "handlers/checkups.py"}


def test_films_are_opened_without_protocols():
    # FFmpeg connects too, where a file names an address and it is let.
    for file, nodes in NODES.items():
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "av.open":
                given = {word.arg: ast.unparse(word.value) for word in node.keywords}
                # The last of several has the last word.
                assert given.get("options", "").rpartition(" | ")[2] == "PYAV_OPTIONS" and "format" in given, file
