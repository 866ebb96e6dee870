"""Published step times, and the programs that were run, rebuilt from their configurations."""
