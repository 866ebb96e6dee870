"""What XLA's compilers for accelerators make of programs, without the chips."""
