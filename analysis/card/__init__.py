"""The judge's card: what one model can and cannot do as a judge, line by line, with intervals."""
