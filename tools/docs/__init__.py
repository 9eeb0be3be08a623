"""Writers of the generated pages under docs/ and of the programs under examples/."""
