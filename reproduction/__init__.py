"""The paper's experiments on real data, and comparisons with other methods. Not in the wheel."""
