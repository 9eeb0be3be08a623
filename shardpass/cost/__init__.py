"""The cost of a program on a machine: bytes moved by collectives, and seconds of collectives and work."""
