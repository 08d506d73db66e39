"""Bit-vector terms, their SMT-LIB form, and the solvers that decide them."""
