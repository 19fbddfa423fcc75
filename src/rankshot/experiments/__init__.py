"""The experiments of the paper, its tables and figures, and the peers measured beside them."""
