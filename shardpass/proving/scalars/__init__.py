"""Small programs, element by element: each element of each tile is one number in a table of scalar terms."""
