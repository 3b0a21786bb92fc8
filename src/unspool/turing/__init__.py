"""Compile finite automata and Turing machines to recurrent networks, and run them exactly."""
