"""Text: sources ─▶ decoding ─▶ reader ─▶ corpus of ids in three splits."""
