"""Public measurements of two shardings of one program, and small programs in both forms."""
