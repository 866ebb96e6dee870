"""Reports: what a result looks like to a person (tables) and to a machine (records)."""
