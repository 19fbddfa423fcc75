"""The files of deploy/: their commands and options exist, and the services fit together."""

import json
import re
from importlib import import_module
from pathlib import Path

import yaml

from command_line import rankshot

ROOT = Path(__file__).parents[2]


def read(name):
    return (ROOT / "deploy" / name).read_text(encoding="utf-8")


def test_the_commands_exist_with_their_options():
    words = [
        json.loads(found)
        for found in re.findall(r"^(?:ENTRYPOINT|CMD) (.+)$", read("Dockerfile"), re.MULTILINE)
    ]
    (unit,) = re.findall(r"^ExecStart=(.+)$", read("rankshot-survey.service"), re.MULTILINE)
    options = rankshot("survey serve --help").out
    for command in (
        [word for part in words for word in part],
        unit.removeprefix("/opt/rankshot/bin/").split(),
    ):
        assert command[:3] == ["rankshot", "survey", "serve"]
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


def test_the_cluster_has_what_the_operator_needs():
    """The fields that the schema of DaskCluster requires, and the names that its pods look for."""
    cluster = yaml.safe_load(read("dask-cluster.yaml"))
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    worker, scheduler = cluster["spec"]["worker"], cluster["spec"]["scheduler"]
    assert cluster["spec"].keys() == {"worker", "scheduler"}
    assert worker.keys() == {"replicas", "spec"}
    assert isinstance(worker["replicas"], int)
    assert scheduler.keys() == {"spec", "service"}
    [one], [other] = worker["spec"]["containers"], scheduler["spec"]["containers"]
    assert (one["name"], other["name"]) == ("worker", "scheduler")
    assert "$(DASK_WORKER_NAME)" in one["args"]
    selector = {"cluster-name": cluster["metadata"]["name"], "component": "scheduler"}
    service = scheduler["service"]
    assert service["selector"] == {f"dask.org/{key}": value for key, value in selector.items()}
    ports = {port["name"]: port["containerPort"] for port in other["ports"]}
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports
    for name, container in (("worker", one), ("scheduler", other)):
        command = import_module(f"distributed.cli.dask_{name}").main
        options = {option for each in command.params for option in each.opts}
        assert container["args"][:2] == ["dask", name]
        assert {word for word in container["args"] if word.startswith("--")} <= options
        image = container["image"]
        assert f"-t {image} ." in read("workers.Dockerfile")
