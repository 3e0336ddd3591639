"""Kernels: from an op package to machine code that runs in a process of its own."""
