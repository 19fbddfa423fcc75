"""What is served besides pages: images, logs, health and outages."""

import json
import re

from sqlalchemy.exc import OperationalError

from asgi_client import begin, open_survey
from rankshot_survey.store.database import Database
from rankshot_survey.study import ItemImage
from rankshot_survey.web.pages import MOST_IMAGE_BYTES, load_images
from refusals import refuses
from small_studies import small_study

# ---- Health, and a database that is gone


def fail(*_):
    raise OperationalError("SELECT a secret", {}, Exception("connection refused\nmore"))


def test_health_and_readiness(tmp_path, monkeypatch):
    with open_survey(small_study(), tmp_path, requests=8) as (client, database):
        assert {client.get("/health").text for _ in range(5)} == {"ok"}
        for _ in range(5):
            ready = client.get("/ready")
            assert (ready.status, json.loads(ready.text)) == (200, {"ready": True, "state": "open"})
        with database.begin_write() as connection:
            connection.exec_driver_sql("UPDATE survey SET state = 'paused'")
        assert json.loads(client.get("/ready").text)["state"] == "paused"
        monkeypatch.setattr(Database, "begin_read", fail)
        assert client.get("/health").status == 200
        ready = client.get("/ready")
        assert (ready.status, json.loads(ready.text)) == (503, {"ready": False, "state": None})
        assert client.get("/").status == 503, "the eighth that counts"
        assert client.get("/").status == 429


# ---- Logs


def test_an_outage_is_one_line_per_request(tmp_path, monkeypatch, caplog):
    with open_survey(small_study(), tmp_path) as (client, _):
        monkeypatch.setattr(Database, "begin_read", fail)
        assert {client.get("/").status for _ in range(3)} == {503}
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert lines == ["the database does not work: connection refused"] * 3


# ---- Static files


def test_the_address_of_a_static_file_names_its_content(tmp_path):
    with open_survey(small_study(), tmp_path) as (client, _):
        page = client.get(begin(client)).text
        (script,) = re.findall(r'src="(/static/question.js\?v=\w+)"', page)
        assert re.findall(r'"/static/[^"?]+"', page) == [], "all have a version"
        # An old page may ask for it by another version: it must not keep what it gets.
        caches = [client.get(url)["cache-control"] for url in (script, script[:-1], script[:-10])]
        assert caches == ["public, max-age=31536000, immutable", "no-cache", "no-cache"]


# ---- Images: checked at the start, served by digest, and nothing else is

IMAGES = {
    "image/png": b"\x89PNG\r\n\x1a\n" + b"\0" * 20,
    "image/jpeg": b"\xff\xd8\xff\xe0" + b"\0" * 20,
    "image/webp": b"RIFF\x1a\0\0\0WEBPVP8L" + b"\0" * 20,
}


def test_an_image_is_served_by_its_digest_with_its_own_kind(tmp_path):
    # The endings may be wrong: the first bytes say what it is.
    images = []
    for name, content in zip(("fox", "bus", "leopard"), IMAGES.values(), strict=True):
        (tmp_path / f"{name}.jpg").write_bytes(content)
        images.append(ItemImage(name, tmp_path / f"{name}.jpg", 'A "fox" & <b>more</b>'))
    (tmp_path / "secret.png").write_bytes(IMAGES["image/png"] + b"secret")
    with open_survey(small_study(images=images), tmp_path) as (client, _):
        page = client.get(begin(client)).text
        assert "A &#34;fox&#34; &amp; &lt;b&gt;more&lt;/b&gt;" in page
        found = {url: client.get(url) for url in re.findall(r'src="(/images/[^"]+)"', page)}
        assert {reply["content-type"]: reply.body for reply in found.values()} == IMAGES
        url = next(iter(found))
        assert found[url]["cache-control"] == "public, max-age=31536000, immutable"
        assert found[url]["x-content-type-options"] == "nosniff"
        others = ("fox.jpg", "secret.png", "..%2fsecret.png", "%2e%2e/secret.png", "")
        for other in (*(f"/images/{name}" for name in others), url + ".png", url[:-1]):
            assert client.get(other).status == 404, other


def test_a_file_that_is_not_an_image_or_too_large_is_named(tmp_path):
    path = tmp_path / "fox.png"
    for content in (
        b"<svg onload='alert(1)'/>",
        IMAGES["image/png"] + b"\0" * MOST_IMAGE_BYTES,
    ):
        path.write_bytes(content)
        with refuses("images", str(path)):
            load_images([ItemImage("fox", path, "A fox")])
