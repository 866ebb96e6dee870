"""Reports of results: tables and pictures for people, records for machines."""
