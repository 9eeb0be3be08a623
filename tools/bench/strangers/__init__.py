"""Public training code: what the adviser says of it, as its authors wrote it and with mistakes planted.

    git clone https://github.com/google-deepmind/nanodo CHECKOUTS/nanodo; ...
    python -m tools.bench.strangers CHECKOUTS
    python -m tools.bench.strangers CHECKOUTS --only lm1b --packages FOLDER     libraries that are installed there

``table.toml`` lists the checkouts with their commits, and for each the mistakes, as texts of its files that are
replaced in a copy. A script of ``scripts/`` runs the checkout's own step with its model and sharding rules on virtual
devices, in a small configuration and with fake data. Nothing of the checkouts is in this repository.
"""
