"""The files of deploy/: their commands and options exist, and they contain no secret."""

import json
import re
from pathlib import Path

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
        for option in named:
            assert re.search(rf"{option}\b", options), option


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
