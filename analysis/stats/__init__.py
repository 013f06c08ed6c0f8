"""Statistics: pure functions over data frames and arrays, one module per family of methods.

Distributions are SciPy's (`scipy.special`); models are statsmodels' (`judging/malibu/twin.py`). The rest is here, since
importing `scipy.stats` takes 1.0 s of CPU and statsmodels 1.1 to 1.5 s, where the whole first screen of a report takes
3.5 s. Where theirs would give less, too:

    agreement      `inter_rater` takes no gaps, and its errors no clusters
    contingency    `chi2_contingency` has no interval of Cramér's V
    mean_test      `permutation_test` takes some 70 s for the 2²⁴ patterns of 24 clusters, and this 0.4 ms
    multiplicity   `multipletests` runs a full garbage collection a call
    paired         `binomtest` and `pearsonr` give the same
    permutation    `permutation_test` flips values, not whole clusters
    power          `TTestPower` gives six digits, and nothing where sign flips decide
    proportions    `proportion_confint` gives the same; it knows no clusters
    resampling     `bootstrap` draws rows, not clusters of unequal weight
"""
