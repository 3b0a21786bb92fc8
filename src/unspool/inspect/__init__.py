"""What a trained network does while it reads: its states, its surprise, its units, how far it looks back."""
