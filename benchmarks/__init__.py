"""Speed and quality on public data, beside baselines. Not part of the package."""
