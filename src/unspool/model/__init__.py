"""The network: config, values ─▶ parameters ─▶ packed ─▶ unroll, bptt ─▶ network ─▶ stream, generate."""
