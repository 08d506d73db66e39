"""What a person gets from a crosscheck: a page, text, JUnit, captures and scripts, all made from the findings alone."""
