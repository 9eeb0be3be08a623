"""Programs with Explicit axes, and the sharding-type errors that ``test_explicit_errors.py`` puts into them."""
