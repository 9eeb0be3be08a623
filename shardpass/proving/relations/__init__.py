"""What a proof knows of a value: terms of the whole program, pieces of tiles, and how ops make others of them."""
