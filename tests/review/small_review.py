"""A small review: inputs of three new classes, whose scores tell them roughly apart."""

import threading
import time
from contextlib import closing, contextmanager
from types import SimpleNamespace

import numpy as np
import uvicorn

import rankshot as rs
from rankshot.review.app import create_app
from rankshot.review.inputs import ShownInputs, find_inputs
from rankshot.review.learning import Learner
from rankshot.review.results import Results
from rankshot.review.session import Journal, Review
from rankshot.web.server import open_port

TOKEN = "a token of the tests, long enough"

SEEN = ("bus", "fox", "leopard", "tiger", "tram")
NEW = ("cat", "dog", "truck")
ORDERS = [["leopard", "tiger"], ["fox", "tiger"], ["bus", "tram"]]
RANKINGS = rs.Rankings.from_orders(ORDERS, items=SEEN, targets=NEW)


def make_scores(n, seed=0, noise=1.0):
    """Return scores with features of n inputs, and their classes."""
    rng = np.random.default_rng(seed)
    truth = np.array(NEW)[np.arange(n) % 3]
    means = {"cat": [0, 1, 3, 2, 0], "dog": [0, 3, 1, 1.5, 0], "truck": [3, 0, 0, 0, 2]}
    values = np.array([means[name] for name in truth]) + noise * rng.normal(size=(n, 5))
    features = np.eye(3)[np.arange(n) % 3] + 0.3 * rng.normal(size=(n, 3))
    return rs.Scores(values, SEEN, features=features), truth


def make_ids(n):
    return [f"x{i}" for i in range(n)]


@contextmanager
def open_review(folder, n=40, given=None, rankings=RANKINGS, ids=None):
    """Yield a review whose journal is in a folder; another one continues it."""
    learner = Learner(rs.Knowledge(rankings, batch=make_scores(n)[0]))
    with (
        closing(Journal(folder / "review.jsonl")) as journal,
        closing(Review(learner, ids or make_ids(n), journal, given)) as found,
    ):
        yield found


def put_behind_proxy(app, path):
    """Return an application as a proxy serves it that has other pages outside of this path."""

    async def pass_on(scope, receive, send):
        inside, _, rest = scope["path"].partition(path)
        rest = f"/{rest}" if not inside else "/elsewhere"
        await app({**scope, "path": rest, "raw_path": rest.encode()}, receive, send)

    return pass_on


@contextmanager
def serve_review(folder, learner, ids, images, path="/"):
    """Serve a review of images while the block runs; its files are in a folder."""
    with (
        closing(Journal(folder / "review.jsonl")) as journal,
        closing(Review(learner, ids, journal)) as review,
        open_port("127.0.0.1", 0) as port,
    ):
        inputs = ShownInputs(ids, learner.scores, find_inputs(ids, images))
        results = Results(review, folder)
        review.start(results.write_all)
        app = create_app(review, inputs, results, token=TOKEN, title=images.name)
        app = put_behind_proxy(app, path)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [port]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        address = f"http://127.0.0.1:{port.getsockname()[1]}{path}?token={TOKEN}"
        yield SimpleNamespace(url=address, review=review)
        server.should_exit = True
        thread.join()
