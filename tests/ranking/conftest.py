import pytest

import rankshot as rs


def random_orders(rng, items, n, ties=True, shortest=1):
    """Random lists of random lengths, with random ties."""
    orders = []
    for _ in range(n):
        names = [items[i] for i in rng.permutation(len(items))]
        names = names[: rng.integers(shortest, len(items) + 1)]
        order = []
        while names:
            size = int(rng.integers(1, 4)) if ties and rng.random() < 0.5 else 1
            group, names = names[:size], names[size:]
            order.append(group[0] if len(group) == 1 else group)
        orders.append(order)
    return orders


@pytest.fixture
def random_rankings(rng):
    def make(n_items=5, n=12, ties=True, shortest=1, **options):
        items = [chr(ord("a") + i) for i in range(n_items)]
        orders = random_orders(rng, items, n, ties, shortest)
        return rs.Rankings.from_orders(orders, items=items, **options)

    return make
