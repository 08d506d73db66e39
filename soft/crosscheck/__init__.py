"""Two or more bundles of one scenario: where the agents differ, proved, explained and sorted by cause."""
