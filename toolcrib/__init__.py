"""The face of toolcrib: the command and the public names."""
