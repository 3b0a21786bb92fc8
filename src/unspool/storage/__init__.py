"""Files that are written atomically and carry a checksum: files ◀─ schema, staging ◀─ tensors ◀─ run_folder, log."""
