"""The one exception for what a user can cause: its message is one or more sentences, fit to be printed as they are."""


class SoftError(Exception):
    """Bad input, a missing file, an agent that does not start: what was wrong, where, and what to do."""
