"""Pictures in files, drawn with matplotlib (extra ``plot``), which is imported only when one is drawn."""
