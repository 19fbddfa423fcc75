"""The files of deploy/: their commands and options exist, and the services fit together."""

import json
import re
from pathlib import Path

import yaml

from survey_command import run_command

ROOT = Path(__file__).parents[2]


def read(name):
    return (ROOT / "survey" / "deploy" / name).read_text(encoding="utf-8")


def test_the_commands_exist_with_their_options():
    words = [
        json.loads(found)
        for found in re.findall(r"^(?:ENTRYPOINT|CMD) (.+)$", read("Dockerfile"), re.MULTILINE)
    ]
    (unit,) = re.findall(r"^ExecStart=(.+)$", read("rankshot-survey.service"), re.MULTILINE)
    options = run_command("serve --help").out
    for command in (
        [word for part in words for word in part],
        unit.removeprefix("/opt/rankshot/bin/").split(),
    ):
        assert command[:2] == ["rankshot-survey", "serve"]
        assert all(word in options for word in command if word.startswith("--"))


def test_the_services_fit_together():
    services = yaml.safe_load(read("compose.yaml"))["services"]
    assert [name for name in services if "ports" in services[name]] == ["proxy"]
    assert "reverse_proxy survey:8000" in read("Caddyfile")
    address = services["survey"]["environment"]["RANKSHOT_SURVEY_DATABASE"]
    known = services["database"]["environment"]
    assert address.startswith(f"postgresql://{known['POSTGRES_USER']}:")
    assert address.endswith(f"@database/{known['POSTGRES_DB']}")
    assert (ROOT / services["survey"]["build"]["dockerfile"]).exists()
