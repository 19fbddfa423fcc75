"""Files of a zero-shot run: tables of scores (CSV, Parquet), predictions, true labels."""
