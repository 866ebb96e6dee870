"""Explanations of shardings."""
