"""The study `attention`: how much attention a model pays to the words of a framing (RLDF's figure 2).

`weights` measures it, `report` compares the framings.
"""
