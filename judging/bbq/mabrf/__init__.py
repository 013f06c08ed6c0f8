"""MABRF: solve, judge, (search,) rephrase, terminate. `loop` has the loop and the two methods of BBQ that use it."""
