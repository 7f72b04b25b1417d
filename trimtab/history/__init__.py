"""Where past load comes from: Prometheus, CSV and Parquet files, and what the operator has seen itself."""
