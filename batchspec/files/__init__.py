"""Reading requests, journalling records, and the directory a run lives in."""
