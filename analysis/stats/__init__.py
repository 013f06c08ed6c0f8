"""Statistics, one family a module: pure functions over data frames and arrays."""
