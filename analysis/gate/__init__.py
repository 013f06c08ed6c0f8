"""The gate: are the lines of any run, card or comparison within what is required, and no worse than before?"""
