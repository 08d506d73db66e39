"""`python -m soft`."""

from soft.cli import main

main()
