"""The gate: every call is checked again, against what holds at that moment. Needs the `serve` extra."""
