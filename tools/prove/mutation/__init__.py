"""Small faults in a package, and the tests that notice them (``tools.prove.mutate``)."""
