"""The networks: config, parameters ─▶ packed ─▶ layer, stack ─▶ network ─▶ attention, sequence_network ─▶ decode, stream, generate."""
