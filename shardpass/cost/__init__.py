"""What a program costs on a machine: bytes that collectives move, and seconds that collectives and work take."""
