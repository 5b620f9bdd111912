"""The service without its doors: decisions, checks, outcomes and observations as plain calls. Knows nothing of HTTP."""
