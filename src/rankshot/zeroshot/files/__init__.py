"""Files of a zero-shot run: tables of scores (CSV, Parquet, .npz), predictions, true labels."""
