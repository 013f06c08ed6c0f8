"""MABRF: solve, judge, (search,) rephrase, terminate. `loop` has it, and the two methods of BBQ that use it."""
