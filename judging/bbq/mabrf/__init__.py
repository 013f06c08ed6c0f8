"""MABRF: solve, judge, (search,) rephrase, terminate. `method` has the two methods of BBQ that use it."""
