"""Programs over a mesh with Explicit axes, each with an error of types put in, and the edits that ``suggest`` prints.

    python -m tools.bench.explicit_errors                 all programs, a line each
    python -m tools.bench.explicit_errors attention       those whose name begins so

Each program of ``programs/`` traces; a row of ``table.py`` takes an ``out_sharding`` or a reshard away, or says another
spec. Of the program with the error, the first alternative without other arguments is applied to the file as ``patch``
would, the file is loaded anew, and its program is priced beside the right one.
"""
