"""Tests through the surfaces that users have, with real parts: compilers, processes, files, browsers."""
