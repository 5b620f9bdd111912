"""HTTP words only: who asks, what they sent, and what goes back. Needs the `serve` extra."""
