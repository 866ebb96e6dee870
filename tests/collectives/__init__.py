"""Public measurements of collectives, held against the figures of chips."""
