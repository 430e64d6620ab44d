"""KataGo's names of search options, for GTP's ``kata-set-param`` and JSON's ``overrideSettings``."""

SEARCH_OPTIONS = {
    "cpuctExploration": "c_puct",
    "cpuctExplorationLog": "c_puct_growth",
    "cpuctUtilityStdevScale": "c_puct_spread",
    "fpuReductionMax": "fpu_reduction",
    "fpuParentWeightByVisitedPolicy": "fpu_mixed",
    "useNoisePruning": "noise_pruning",
    "valueWeightExponent": "value_weight",
    "useGraphSearch": "transpositions",
}
"""KataGo's name -> our search option, where both mean the same"""
