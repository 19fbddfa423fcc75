"""The files of deploy/: their commands and options exist, and they contain no secret."""

import json
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from command_line import rankshot

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "rankshot-survey.service"


def read(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def docker_instruction(name):
    """Return the last instruction of this name that has a list."""
    lines = read("Dockerfile").replace("\\\n", " ").splitlines()
    found = [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]
    return json.loads(found[-1])


def unit_command():
    (line,) = re.findall(r"^ExecStart=(.+)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    return line.split()


def test_the_commands_exist_with_their_options():
    image = docker_instruction("ENTRYPOINT") + docker_instruction("CMD")
    program, *unit = unit_command()
    assert image[:3] == [Path(program).name, *unit[:2]] == ["rankshot", "survey", "serve"]
    options = rankshot("survey serve --help").out
    for command in (image, unit):
        named = [word for word in command if word.startswith("--")]
        assert "--log" in named
        for option in named:
            assert re.search(rf"{option}\b", options), option


def test_the_image_is_made_of_what_is_there_and_does_not_run_as_root():
    text = read("Dockerfile")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert names == {"pyproject.toml", "README.md", "LICENSE", "constraints.txt", "src"}
    assert all((ROOT / name).exists() for name in names)
    allowed = {line[1:] for line in read("Dockerfile.dockerignore").splitlines() if line[0] == "!"}
    assert allowed == names
    assert "--constraint constraints.txt" in text
    assert re.search(r"^USER [1-9]\d*$", text, re.MULTILINE)
    assert re.search(r"^VOLUME /data$", text, re.MULTILINE)
    health = text[text.index("HEALTHCHECK") :]
    port = docker_instruction("CMD")[docker_instruction("CMD").index("--port") + 1]
    assert f"http://127.0.0.1:{port}/health" in health


def test_the_services_fit_together():
    services = yaml.safe_load(read("compose.yaml"))["services"]
    assert set(services) == {"survey", "database", "proxy"}
    assert [name for name in services if "ports" in services[name]] == ["proxy"]
    assert "reverse_proxy survey:8000" in read("Caddyfile")
    assert "{$SURVEY_HOST}" in read("Caddyfile")
    address = services["survey"]["environment"]["RANKSHOT_SURVEY_DATABASE"]
    known = services["database"]["environment"]
    assert address.startswith(f"postgresql://{known['POSTGRES_USER']}:")
    assert address.endswith(f"@database/{known['POSTGRES_DB']}")
    assert (DEPLOY / services["survey"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / services["survey"]["build"]["dockerfile"]).exists()


def test_secrets_come_from_a_file_that_is_not_committed():
    used = set(re.findall(r"\$\{(\w+)", read("compose.yaml")))
    example = dict(line.split("=") for line in read(".env.example").splitlines() if line[0] != "#")
    assert set(example) == used
    assert example["RANKSHOT_SURVEY_TOKEN"] == example["POSTGRES_PASSWORD"] == ""
    # Without a value, compose says so instead of starting without a password.
    assert all(f"{name}:?" in read("compose.yaml") for name in used)
    assert "deploy/.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_unit_is_restarted_and_may_do_little():
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(UNIT, encoding="utf-8")
    service = unit["Service"]
    assert service["Restart"] == "always"
    assert service["User"] != "root"
    assert service["ProtectSystem"] == "strict"
    assert service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path):
    # systemd also looks whether the program is there.
    text = UNIT.read_text(encoding="utf-8").replace(unit_command()[0], sys.executable)
    (tmp_path / UNIT.name).write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "verify", str(tmp_path / UNIT.name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert UNIT.name not in done.stderr
    assert done.returncode == 0, done.stderr
