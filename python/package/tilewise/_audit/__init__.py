"""Programs that are audited: alone, together, compared, on several machines."""
