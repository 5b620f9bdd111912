"""Readers of the formats that tools and logs come in; each gives cards, traces or queries."""
