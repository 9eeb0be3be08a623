"""Programs with Explicit axes that reshard more than they must, at the lines that end with ``# wasteful``."""
