"""The application answers as its OpenAPI document says, whatever it is sent (schemathesis)."""

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import schemathesis
from asgi_client import Client, begin, finish, form_of, open_survey
from schemathesis.config import SchemathesisConfig
from server_process import TOKEN
from small_studies import small_study

from rankshot.survey.store.database import RATER_DIGITS

AS_RESEARCHER = {"Authorization": f"Bearer {TOKEN}"}
STUDY = small_study(completion_url="https://example.org/done")

# What schemathesis may do: every check of its own, with these exceptions.
CONFIG = {
    "generation": {
        "max-examples": 12,
        "deterministic": True,
        "database": "none",
        # Every request has the researcher's token; one check takes it away again.
        "with-security-parameters": False,
    },
    "checks": {
        # 413 is ours for a form with too many fields.
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "403", "404", "405", "409", "413", "415", "422"]
        },
    },
    "operations": [
        *(
            # Every page of them is made of all participants and answers.
            {"include-path": f"/researcher{path}", "generation": {"max-examples": 5}}
            for path in ("", "/progress", "/data/{name}")
        ),
        {
            # A document cannot say that places are 1, 2, 3, each once.
            "include-path": "/p/{link}/{number}",
            "checks": {
                "positive_data_acceptance": {"expected-statuses": ["303", "403", "404", "422"]}
            },
        },
        *(
            {
                # Their names are numbers of questions as well, though wrong ones: 422, not 405.
                "include-path": path,
                "checks": {"unsupported_method": {"enabled": False}},
            }
            for path in ("/p/{link}/instructions", "/p/{link}/leave", "/p/{link}/withdraw")
        ),
    ],
}


class Door:
    """Stands for the application while the tests are collected, when there is none yet."""

    app = None

    async def __call__(self, *request):
        await self.app(*request)


def _document():
    """Return the OpenAPI document: schemathesis makes a test of each operation in it."""
    with TemporaryDirectory() as folder, open_survey(STUDY, Path(folder)) as (app, _):
        return app.openapi()


DOCUMENT = _document()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
DOOR = Door()
FORMS = {
    "POST /start": ("/",),
    "POST /researcher/login": ("/researcher",),
    **{
        f"POST /researcher/{name}": ("/researcher", {"authorization": f"Bearer {TOKEN}"})
        for name in ("logout",)
    },
}
"""Where forms come from."""
SEEN = {}
NAMES = count()


@pytest.fixture(scope="module", autouse=True)
def _app(tmp_path_factory):
    with open_survey(STUDY, tmp_path_factory.mktemp("openapi")) as (app, _):
        DOOR.app = app
        # So that there is something to download.
        finish(Client(app), begin(Client(app)))
        yield


def _load_schema(document):
    schema = schemathesis.openapi.from_dict(document, config=SchemathesisConfig.from_dict(CONFIG))
    schema.app = DOOR
    return schema


def _make_real(case):
    """Put links that exist, and tokens of real forms, into a request: so it gets further."""
    client = Client(DOOR.app)
    page = FORMS.get(case.operation.label)
    if page is not None:
        case.body["form"] = form_of(client.get(*page).text).fields["form"]
    if "rater" in case.path_parameters:
        home = begin(client, f"participant=p{next(NAMES)}")
        case.path_parameters["rater"] = home.removeprefix("/p/")[:RATER_DIGITS]
    if "link" not in case.path_parameters:
        return
    home = begin(client, f"participant=p{next(NAMES)}")
    if case.operation.path.endswith("/leave"):
        finish(client, home)
    case.path_parameters["link"] = home.removeprefix("/p/")
    if case.operation.path.endswith("/reopen"):
        finish(client, home, skip="yes")
        case.body["form"] = form_of(client.get(home).text).fields["form"]
    if case.operation.label == "POST /p/{link}/withdrawn":
        case.body["form"] = form_of(client.get(f"{home}/withdraw").text).fields["form"]
    if "number" in case.path_parameters:
        form = form_of(client.get(home).text)
        case.path_parameters["number"] = form.action.rsplit("/", 1)[1]
        case.body["form"] = form.fields["form"]


def _test_of(label):
    """Return the test of one operation: schemathesis would give all of them one name."""

    def every_answer_is_described(case):
        if case.meta.generation.mode.is_positive:
            _make_real(case)
        response = case.call_and_validate(headers=AS_RESEARCHER)
        SEEN.setdefault(label, set()).add(response.status_code)
        if "security" in OPERATIONS[label]:
            case.call_and_validate()

    method, path = label.split()
    alone = {**DOCUMENT, "paths": {path: {method.lower(): OPERATIONS[label]}}}
    return _load_schema(alone).parametrize()(every_answer_is_described)


for number, operation in enumerate(OPERATIONS):
    globals()[f"test_operation_{number}"] = _test_of(operation)


def test_every_operation_was_tried_to_its_end():
    if len(SEEN) < len(OPERATIONS):
        pytest.skip("the test above was not run for all operations")
    wanted = {label: 303 if "303" in it["responses"] else 200 for label, it in OPERATIONS.items()}
    # Nothing that is made up is the token.
    wanted["POST /researcher/login"] = 401
    assert {label for label, status in wanted.items() if status not in SEEN[label]} == set()


def test_the_document_is_valid():
    _load_schema(DOCUMENT).validate()
