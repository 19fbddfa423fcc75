"""How much memory work takes."""

import tracemalloc


def peak_of(work):
    """Return the most bytes that were taken at a time, and the answer."""
    tracemalloc.start()
    try:
        answer = work()
        return tracemalloc.get_traced_memory()[1], answer
    finally:
        tracemalloc.stop()
