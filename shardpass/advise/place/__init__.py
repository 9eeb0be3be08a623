"""Everything that a person can write in a program: places, read from a module and written into one."""
