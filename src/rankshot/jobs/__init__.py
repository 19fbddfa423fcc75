"""Work that can be resumed, in one process, in many, or on a Dask cluster.

A job's output is a folder with one Parquet part for each part of its input, and a manifest. A
command uses it like this: the inputs are listed once, the parts are the scores, and a folder of
parts is read as one table.

    listed = list_inputs(plan, "photos")                      # of jobs.score_parts: walks once
    run = score(plan, listed, "scores", update=True)          # goes on, or finds all done
    table = open_scores("scores")                             # of zeroshot.files.score_tables
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
