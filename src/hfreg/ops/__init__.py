"""Op packages: what an operator means, before anything is compiled."""
