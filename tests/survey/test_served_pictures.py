"""Pictures of items: checked when the server starts, served by digest, and nothing else is."""

import re

import pytest
from asgi_client import Client, begin, open_survey
from small_studies import small_study

from rankshot import RankshotError
from rankshot.survey import Picture
from rankshot.survey.web.pages import MOST_PICTURE_BYTES, load_pictures

PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n" + b"\0" * 20,
    "image/jpeg": b"\xff\xd8\xff\xe0" + b"\0" * 20,
    "image/webp": b"RIFF\x1a\0\0\0WEBPVP8L" + b"\0" * 20,
}


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_is_served_by_its_digest_with_its_own_kind(tmp_path, kind):
    # The ending may be wrong: the first bytes say what it is.
    path = tmp_path / "fox.jpg"
    path.write_bytes(PICTURES[kind])
    (tmp_path / "secret.png").write_bytes(PICTURES["image/png"] + b"secret")
    study = small_study(pictures=(Picture("fox", path, 'A "fox" & <b>more</b>'),))
    with open_survey(study, tmp_path) as (app, _):
        client = Client(app)
        page = client.get(begin(client)).text
        (url,) = set(re.findall(r'src="(/pictures/[^"]+)"', page))
        assert "A &#34;fox&#34; &amp; &lt;b&gt;more&lt;/b&gt;" in page
        reply = client.get(url)
        assert (reply.status, reply.body, reply["content-type"]) == (200, PICTURES[kind], kind)
        assert reply["cache-control"] == "public, max-age=31536000, immutable"
        assert reply["x-content-type-options"] == "nosniff"
        for other in (
            "/pictures/fox.jpg",
            "/pictures/secret.png",
            "/pictures/..%2fsecret.png",
            "/pictures/%2e%2e/secret.png",
            "/pictures/" + str(path),
            url + ".png",
            url[:-1],
            "/pictures/",
        ):
            assert client.get(other).status == 404, other


def test_a_file_that_is_no_picture_or_too_large_or_gone_is_named(tmp_path):
    path = tmp_path / "fox.png"
    for content, message in (
        (b"<svg onload='alert(1)'/>", "this must be a JPEG, PNG or WebP picture of at most 1 MiB"),
        (b"", "this must be a JPEG, PNG or WebP picture of at most 1 MiB"),
        (
            PICTURES["image/png"] + b"\0" * MOST_PICTURE_BYTES,
            "picture of at most 1 MiB: convert it",
        ),
        (None, "cannot read this picture (No such file or directory)"),
    ):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(RankshotError, match=re.escape(message)) as caught:
            load_pictures([Picture("fox", path, "A fox")])
        assert str(caught.value).startswith(f"{path}: ")
