"""The vendor's half: freeze a running agent and follow every path through it from there."""
