"""The report of a run for a person: where right tools are lost, what to do about it, and the page that says so."""
