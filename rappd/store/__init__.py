"""The one record on disk: threads and their events, append-only, hash-chained, group-committed."""
