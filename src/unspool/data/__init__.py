"""Text and other sequences: text ─▶ tokens ─▶ batches; series; file formats; encoders; splits."""
