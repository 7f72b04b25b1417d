"""Bytes that nobody meant, for everything that reads what others wrote. `make fuzz` steers them by coverage."""
