"""Machines compiled into recurrent networks: finite automata, and Turing machines run exactly."""
