"""The bundle: what a vendor ships and a stranger reads. Model, writer, reader, checks, audit and export."""
