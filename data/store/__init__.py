"""The store: decisions, outcomes, tickets and observations in SQLite or PostgreSQL. Needs the `serve` extra."""
