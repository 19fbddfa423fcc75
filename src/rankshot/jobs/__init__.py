"""Work that can be resumed, in one process, in many, or on a Dask cluster.

A job's output is a folder with one Parquet part for each part of its input, and a manifest. For
example, to score images: list the inputs once, write their scores in parts, and read the folder of
parts as one table.

    listed = list_inputs(plan, "photos")                      # from jobs.score_parts
    run = score(plan, listed, "scores", update=True)          # resumes unfinished work
    table = open_scores("scores")                             # from zeroshot.files.score_tables
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
