"""Bad input by generation: everything that is parsed, fed with what nobody would write on purpose.

    python -m tests.fuzz --inputs 100000 --seed 1

Seeds are mutated by text, by bytes and by structure; what reaches lines of ours not reached before is kept and mutated
further. An input may be accepted, or rejected with an error of ours; anything else is a crash, and more than a second
of work is a hang.
"""
