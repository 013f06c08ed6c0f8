"""The study `attention`: how much attention a model pays to the words of a framing (RLDF's figure 2).

`study` reads the prompts of a framing run, `weights` measures, `report` compares the framings.
"""
