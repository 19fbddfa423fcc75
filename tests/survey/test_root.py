"""A survey below a path of another site: the proxy takes the prefix away, our links have it."""

import re

from asgi_client import Client, form_of, open_survey
from server_process import TOKEN
from small_studies import small_study

PREFIX = "/a/survey"


def below(address):
    """Return what the proxy makes of an address that a page or a redirect names."""
    assert address.startswith(f"{PREFIX}/"), address
    return address.removeprefix(PREFIX)


def test_every_link_form_and_redirect_stays_below_the_prefix(tmp_path):
    study = small_study(platform="prolific", completion_url="https://example.org/done")
    with open_survey(study, tmp_path, root=PREFIX) as (app, _):
        client = Client(app)
        pages = [client.get("/?PROLIFIC_PID=p1").text]
        form = form_of(pages[-1])
        home = below(client.post(below(form.action), form.fields)["location"])
        pages.append(client.get(home).text)
        home = home.removesuffix("/instructions")
        while 'name="place"' in (page := client.get(home).text):
            pages.append(page)
            form = form_of(page)
            reply = client.post(below(form.action), form.answer("1"))
            assert below(reply["location"]) == home
        pages.append(page)
        login = client.get("/researcher").text
        form = form_of(login)
        entered = client.post(below(form.action), {**form.fields, "token": TOKEN})
        cookie = entered["set-cookie"]
        assert f"Path={PREFIX}/researcher" in cookie
        view = client.get(below(entered["location"]), {"cookie": cookie.partition(";")[0]}).text
        pages += [login, view]
        assert "Progress of the survey" in view
    named = re.findall(r'\s(?:href|src|action|data-url)="([^"]+)"', "".join(pages))
    assert len(named) > 20
    assert [address for address in named if not address.startswith((f"{PREFIX}/", "#"))] == []
