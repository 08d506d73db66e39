"""Concrete inputs to live agents."""
