"""What can be held of Dockerfile, compose.yaml and .env.example without an engine that builds and runs them."""

import json
import re
import subprocess
from fnmatch import fnmatch

import pytest
import yaml
from cryptography.fernet import Fernet

from handlers.cli import COMMANDS
from handlers.config import Config, LogSettings
from platforms.registry import PLATFORMS
from tests.service import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
LINES = re.sub(r"\\\n\s*", "", re.sub("(?m)^#.*\n", "", DOCKERFILE)).splitlines()
INSTRUCTIONS = [line.split(maxsplit=1) for line in LINES if line]
COMPOSE = (ROOT / "compose.yaml").read_text()
SERVICES = yaml.safe_load(COMPOSE)["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "posthorn"}
EXAMPLE = (ROOT / ".env.example").read_text()
SECRETS = {"POSTGRES_PASSWORD", "S3_ACCESS_KEY", "S3_SECRET_KEY", "POSTHORN_SECRET_KEYS"}
INTERPOLATED = re.compile(r"\$\{(\w+)(:[?-][^}]+)?\}")


class Asked(dict):
    """An environment that remembers what it was asked for."""

    names = frozenset()

    def get(self, name, default=None):
        self.names |= {name}
        return super().get(name, default)


@pytest.fixture(scope="module")
def known(environ):
    """The names of all settings."""
    asked = Asked({**environ, "S3_CREDENTIALS": "keys"})
    Config.from_env(asked)
    LogSettings.from_env(asked)
    return asked.names


def final(instruction):
    """What the instruction says in the last stage, the last time."""
    last = max(at for at, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM")
    return [said for name, said in INSTRUCTIONS[last:] if name == instruction][-1]


def test_the_image_is_built_of_bases_with_versions_and_of_nothing_from_elsewhere():
    arguments = dict(said.split("=") for name, said in INSTRUCTIONS if name == "ARG")
    named = [said.split()[0] for name, said in INSTRUCTIONS if name == "FROM"]
    bases = [re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], name) for name in named]
    assert len(bases) == 2 and all(re.fullmatch(r"python:3\.\d+-slim-\w+", base) for base in bases)
    assert "ADD" not in dict(INSTRUCTIONS) and not re.search(r"https?://(?!127\.0\.0\.1)|curl |wget |apt-get", DOCKERFILE)


def test_the_image_runs_as_nobody_in_particular_and_is_told_to_end_as_we_listen():
    assert re.fullmatch(r"[1-9]\d{4}:[1-9]\d{4}", final("USER"))
    assert final("STOPSIGNAL") == "SIGTERM" and "PYTHONDONTWRITEBYTECODE=1" in final("ENV")


def test_the_commands_of_the_image_are_there_and_no_shell_stands_between():
    assert json.loads(final("ENTRYPOINT")) == ["posthorn"] and json.loads(final("CMD"))[0] in COMMANDS
    for service in OURS.values():
        assert service.get("command", ["serve"])[0] in COMMANDS and "entrypoint" not in service


def test_the_health_check_of_the_image_asks_the_api(api_url):
    program = json.loads(final("HEALTHCHECK").partition("CMD ")[2])
    port = final("EXPOSE")
    assert program[:2] == ["python", "-c"] and program[2].count(port) == 1 == COMPOSE.count(f":{port}\"")
    for at, status in ((api_url.rpartition(":")[2], 0), ("1", 1)):
        done = subprocess.run(["python3", "-c", program[2].replace(port, at)], stderr=subprocess.DEVNULL, timeout=30)
        assert done.returncode == status


def test_what_the_image_is_built_of_is_all_that_it_needs_and_nothing_more():
    shown = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert shown == {"LICENSE", "README.md", "pyproject.toml", "setup.cfg", "handlers", "openapi", "platforms", "storage"}
    assert shown <= {file.partition("/")[0] for file in files}


def test_what_a_setting_of_the_image_may_need_is_in_it_and_nobody_is_sent_to_packages_of_others():
    assert "'.[otel]'" in DOCKERFILE and "install --no-index --find-links /wheels 'posthorn[otel]'" in DOCKERFILE
    told = [file for pattern in ("*.md", "docs/*.md", "handlers/*.py", "storage/*.py") for file in ROOT.glob(pattern)]
    assert [file.name for file in told if re.search(r"pip3? install ['\"]?posthorn\b", file.read_text())] == []


def test_every_setting_of_the_services_is_one(known):
    for service in OURS.values():
        assert set(service["environment"]) <= known
    named = set(re.findall(r"(?m)^#?([A-Z0-9_]+)=", EXAMPLE))
    ports = {"API_LISTEN", "STORE_LISTEN"}
    networks = {name for name in named if any(fnmatch(name, f"POSTHORN_{network.name.upper()}_*") for network in PLATFORMS)}
    assert named - networks - ports <= known and named >= ports and networks
    assert {name for name, _ in INTERPOLATED.findall(COMPOSE)} <= ports | SECRETS | known


def test_no_secret_stands_in_the_files_and_each_is_asked_for():
    asked = {name for name, default in INTERPOLATED.findall(COMPOSE) if default.startswith(":?")}
    assert asked == SECRETS - {"POSTHORN_SECRET_KEYS"}      # this one is in .env, which the service reads as a whole
    assert all(service["env_file"] == ".env" for service in OURS.values())
    assert not set(re.findall(r"(?m)^([A-Z0-9_]+)=", EXAMPLE)) & SECRETS
    assert ".env" in (ROOT / ".gitignore").read_text().split()


def test_the_two_commands_make_the_secrets(tmp_path, known):
    commands = re.findall(r"(?m)^#   (.+)$", EXAMPLE)
    (tmp_path / ".env.example").write_text(EXAMPLE)
    subprocess.run(["bash", "-euc", "\n".join(commands)], cwd=tmp_path, check=True, timeout=30)
    assert (tmp_path / ".env").stat().st_mode & 0o77 == 0
    made = dict(re.findall(r"(?m)^([A-Z0-9_]+)=(.+)$", (tmp_path / ".env").read_text()))
    Fernet(made["POSTHORN_SECRET_KEYS"])
    assert SECRETS <= set(made) and all(len(made[name]) >= 20 for name in SECRETS)
    url = INTERPOLATED.sub(lambda found: made[found[1]], SERVICES["api"]["environment"]["DATABASE_URL"])
    for service in OURS.values():
        # Whatever .env says, the ports for metrics are those that Prometheus is told of.
        given = {**made, "POSTHORN_API_METRICS_PORT": "9464", **service["environment"], "DATABASE_URL": url}
        config = Config.from_env(given)
        assert "command" in service or (config.metrics_host, config.api_metrics_port) == ("0.0.0.0", 9465)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined(name):
    service = SERVICES[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in service["tmpfs"] and not {"privileged", "network_mode", "pid"} & set(service)
    assert service.get("cap_add", []) == (["CHOWN", "SETGID", "SETUID"] if name == "store" else [])
    assert service["image"] == "posthorn" or re.fullmatch(r"[a-z/]+:\d+[\w.-]*", service["image"])
    assert service.get("user") == {"database": "postgres"}.get(name)    # the others' images say who
    assert all(port.startswith("${") and ":-127.0.0.1:" in port for port in service.get("ports", ()))
    assert all(volume.partition(":")[0] in yaml.safe_load(COMPOSE)["volumes"] for volume in service.get("volumes", ()))


def test_the_store_is_reached_by_what_is_ours_alone():
    assert {name: service.get("networks", ["default"]) for name, service in SERVICES.items()} == {
        **dict.fromkeys(OURS, ["default", "store"]), "database": ["default"], "store": ["store"]}


def test_nothing_starts_before_what_it_needs_and_nothing_is_killed_while_it_sends():
    assert {name: SERVICES[name].get("depends_on") for name in SERVICES} == {
        "api": {"migrate": {"condition": "service_completed_successfully"}},
        "worker": {"migrate": {"condition": "service_completed_successfully"}},
        "migrate": {"database": {"condition": "service_healthy"}, "store": {"condition": "service_healthy"}},
        "database": None, "store": None}
    assert SERVICES["migrate"]["restart"] == "no"
    assert all("test" in SERVICES[name]["healthcheck"] for name in ("worker", "database", "store"))
    assert all(int(service["stop_grace_period"].removesuffix("s")) >= 30 for service in OURS.values())
