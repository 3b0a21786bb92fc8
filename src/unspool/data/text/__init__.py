"""Text: sources ─▶ reader ─▶ corpus of ids in parts."""
