"""SOFT: find the inputs on which two OpenFlow switches behave differently."""

__version__ = "0.1.0"
