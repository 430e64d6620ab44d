"""KataGo's names of search options, for GTP's ``kata-set-param`` and JSON's ``overrideSettings``."""

SEARCH_OPTIONS = {
    "cpuctExploration": "c_puct",
    "cpuctExplorationLog": "c_puct_growth",
    "fpuReductionMax": "fpu_reduction",
    "subtreeValueBiasFactor": "value_bias",
    "valueWeightExponent": "value_weight",
}
"""KataGo's name -> our search option, where both mean the same"""
