"""Statistics: pure functions over data frames and arrays, one module per family of methods."""
