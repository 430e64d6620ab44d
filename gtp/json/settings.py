"""KataGo's settings: the keys of its config files and of ``overrideSettings``, and our options for them.

The tables contain all keys that KataGo's search reads, with type and range, so that wrong values are refused in
KataGo's words; keys without a counterpart here have no effect. Config files are KataGo's: ``key = value``, ``#`` begins
a comment, unknown keys are ignored. Source: KataGo, cpp/program/setup.cpp and cpp/configs/analysis_example.cfg.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from engine.config import HumanOptions, SearchOptions
from engine.config.profiles import checked_profile
from gtp.protocol import COLORS

SEARCH_OPTIONS = {
    "cpuctExploration": "c_puct",
    "fpuReductionMax": "fpu_reduction",
    "subtreeValueBiasFactor": "value_bias",
    "valueWeightExponent": "value_weight",
}
"""KataGo's name -> our search option of the same meaning"""
NO_EXPLORATION = (
    "humanSLRootExploreProbWeightful", "humanSLPlaExploreProbWeightless", "humanSLPlaExploreProbWeightful",
    "humanSLOppExploreProbWeightless", "humanSLOppExploreProbWeightful",
)  # fmt: skip
"""KataGo's settings of exploration by a human network that does not exist here; 0 is the only value accepted"""
_NUMBERS = """
avoidRepeatedPatternUtility -3 3, chosenMovePrune 0 1e10, chosenMoveSubtract 0 1e10, chosenMoveTemperature 0 5,
chosenMoveTemperatureEarly 0 5, chosenMoveTemperatureHalflife 0.1 100000, chosenMoveTemperatureOnlyBelowProb 0 1,
cpuctExploration 0 10, cpuctExplorationBase 10 100000, cpuctExplorationLog 0 10, cpuctUtilityStdevPrior 1e-8 10,
cpuctUtilityStdevPriorWeight 0 100, cpuctUtilityStdevScale 0 1, drawEquivalentWinsForWhite 0 1,
dynamicScoreCenterScale 0.2 5, dynamicScoreCenterZeroWeight 0 1, dynamicScoreUtilityFactor 0 1,
endgameTurnTimeDecay 0 1000, fpuLossProp 0 1, fpuParentWeight 0 1, fpuParentWeightByVisitedPolicyPow 0 5,
fpuReductionMax 0 2, futileVisitsThreshold 0.01 1, graphSearchCatchUpLeakProb 0 1, graphSearchCatchUpProp 0 1,
humanSLChosenMovePiklLambda 0 1e9, humanSLChosenMoveProp 0 1, humanSLCpuctExploration 0 1000,
humanSLCpuctPermanent 0 1000, humanSLOppExploreProbWeightful 0 1, humanSLOppExploreProbWeightless 0 1,
humanSLPlaExploreProbWeightful 0 1, humanSLPlaExploreProbWeightless 0 1, humanSLRootExploreProbWeightful 0 1,
humanSLRootExploreProbWeightless 0 1, lagBuffer 0 3600, lcbStdevs 1 12, maxTime 0 1e20, maxTimePondering 0 1e20,
midgameTimeFactor 0.01 100, midgameTurnPeakTime 0 1000, minPlayoutsPerThread 0 1e20, minVisitPropForLCB 0 1,
nnPolicyTemperature 0.01 5, noResultUtilityForWhite -1 1, noisePruneUtilityScale 0.001 10, noisePruningCap 0 1e50,
numVirtualLossesPerThread 0.01 1000, obviousMovesPolicyEntropyTolerance 0.001 2,
obviousMovesPolicySurpriseTolerance 0.001 2, obviousMovesTimeFactor 0.01 1, overallocateTimeFactor 0.01 100,
playoutDoublingAdvantage -3 3, policyOptimism 0 1, rootDesiredPerChildVisitsCoeff 0 100,
rootDirichletNoiseTotalConcentration 0.001 10000, rootDirichletNoiseWeight 0 1, rootEndingBonusPoints -1 1,
rootFpuLossProp 0 1, rootFpuReductionMax 0 2, rootPolicyOptimism 0 1, rootPolicyTemperature 0.01 100,
rootPolicyTemperatureEarly 0.01 100, searchFactorAfterOnePass 0 1, searchFactorAfterTwoPass 0 1,
staticScoreUtilityFactor 0 1, subtreeValueBiasFactor 0 1, subtreeValueBiasFreeProp 0 1,
subtreeValueBiasWeightExponent 0 1, treeReuseCarryOverTimeFactor 0 1, uncertaintyCoeff 0.0001 1,
uncertaintyExponent 0 2, uncertaintyMaxWeight 1 100, valueWeightExponent 0 1, wideRootNoise 0 5,
winLossUtilityFactor 0 1
"""
_COUNTS = """
graphSearchRepBound 3 50, maxPlayouts 1 1125899906842624, maxPlayoutsPondering 1 1125899906842624,
maxVisits 1 1125899906842624, maxVisitsPondering 1 1125899906842624, mutexPoolSize 1 536870912,
numSearchThreads 1 4096, numSearchThreadsPerAnalysisThread 1 4096, rootNumSymmetriesToSample 1 8
"""
_SWITCHES = """
alwaysComputePassAliveUnderSuicideRules antiMirror conservativePass enableMorePassingHacks enablePassingHacks
excludeTerritoryAdjacentToAtari fillDameBeforePass fpuParentWeightByVisitedPolicy humanSLChosenMoveIgnorePass
ignoreAllHistory ignorePreRootHistory rootNoiseEnabled rootPruneUselessMoves rootSymmetryPruning useGraphSearch
useLcbForSelection useNoisePruning useNonBuggyLcb useUncertainty
"""
_WORDS = "humanSLProfile playoutDoublingAdvantagePla reportAnalysisWinratesAs"
_FIXED = ("nodeTableShardsPowerOfTwo", "useEvalCache", "evalCacheMinVisits")
AT_START = _FIXED
"""Keys that are ignored in config files, and refused in ``overrideSettings``"""
TRUE, FALSE = ("true", "t", "1", "enabled", "yes"), ("false", "f", "0", "disabled", "no")
PERSPECTIVES = COLORS | {"sidetomove": ""}
AUTO = "auto"


def _table(text: str) -> dict[str, tuple[float, float]]:
    """Parse a table of keys and ranges into key -> (minimum, maximum)."""
    rows = (row.split() for row in text.split(","))
    return {name: (float(low), float(high)) for name, low, high in rows}


Meaning: TypeAlias = tuple[str, Callable[[Any], Any]]
"""Our option or attribute, and the conversion of a value"""
# 0 is no exploration for KataGo, and the automatic value for our c_puct.
OF_SEARCH: dict[str, Meaning] = {key: (name, float) for key, name in SEARCH_OPTIONS.items()} | {
    "cpuctExploration": ("c_puct", lambda value: max(value, LEAST_EXPLORATION)),
    "nnPolicyTemperature": ("policy_temperature", lambda value: max(value, MIN_TEMPERATURE)),
    "wideRootNoise": ("wide_root_noise", float),
    "useLcbForSelection": ("move_choice", lambda value: "lcb" if value else "visits"),
    "rootNumSymmetriesToSample": ("root_symmetries", lambda value: "8" if value > 1 else "1"),
    "humanSLProfile": ("human_profile", str),
}
"""KataGo's key -> our search option, and the conversion of the key's value"""
# 0 is the shortest time for KataGo, and no limit for us.
OF_QUERY: dict[str, Meaning] = {
    "maxVisits": ("visits", int),
    "maxPlayouts": ("playouts", int),
    "maxTime": ("seconds", lambda value: max(value, LEAST_SECONDS) if value < MAX_SECONDS else 0.0),
    "ignorePreRootHistory": ("hides_course", bool),
    "reportAnalysisWinratesAs": ("perspective", str),
    "rootDirichletNoiseWeight": ("noise_weight", float),
}
"""KataGo's key -> attribute of :class:`Settings`, and the conversion of the key's value"""
OF_HUMAN: dict[str, Meaning] = {
    # KataGo allows 1, with which no visit would be left for the search.
    "humanSLRootExploreProbWeightless": ("human_explore", lambda value: min(value, MOST_EXPLORATION)),
    "humanSLCpuctExploration": ("human_c_puct", float),
    "humanSLCpuctPermanent": ("human_c_permanent", float),
}
"""KataGo's key -> our option of exploration by a human network, and the conversion of the key's value"""
NUMBERS, COUNTS = _table(_NUMBERS), _table(_COUNTS)
SWITCHES, WORDS = frozenset(_SWITCHES.split()), frozenset(_WORDS.split())
KNOWN = NUMBERS.keys() | COUNTS.keys() | SWITCHES | WORDS | set(_FIXED)
"""The keys that KataGo's search reads"""
MIN_TEMPERATURE = 0.1
"""Minimum of our search option ``policy_temperature``"""
MAX_SECONDS = 1e7
"""Time limit, in seconds, from which on a search has no time limit"""
LEAST_SECONDS = 1e-3
LEAST_EXPLORATION = 1e-6
MOST_EXPLORATION = 0.95
"""Maximum of our option ``human_explore``"""
KATAGOS_EXPLORATION = HumanOptions(human_c_puct=1.0, human_c_permanent=0.0)
"""Exploration by a human network with KataGo's defaults, which its example of a GTP configuration changes"""


@dataclass(frozen=True)
class Settings:
    """The settings of a query."""

    search: SearchOptions
    visits: int = 500
    playouts: int = 0
    """maximum number of playouts; 0 = no limit"""
    seconds: float = 0.0
    """maximum search time; 0 = no limit"""
    noise_weight: float = 0.25
    """weight of Dirichlet noise at the root if noise is on"""
    perspective: str = ""
    """perspective of answers: b, w, or empty for the side to move"""
    hides_course: bool = True
    """hide the moves before the analysed position from the network, if its encoder allows that"""
    pv_length: int = 15
    """maximum number of moves of a principal variation after the first"""
    warns: bool = True
    """send a warning for each unknown field"""
    human: HumanOptions = KATAGOS_EXPLORATION
    """exploration by a human network"""


def unknown(keys: Iterable[str]) -> list[str]:
    """Those of the keys that KataGo's search does not read, sorted."""
    return sorted(set(keys) - KNOWN)


def override(settings: Settings, given: Mapping[str, str]) -> Settings:
    """Settings changed by KataGo's keys; unknown keys are ignored, and the value ``auto`` changes nothing.

    Raises:
        ValueError: a value that its key does not accept, or a key that cannot change; one line, in KataGo's words.
    """
    values: dict[str, Any] = {key: _value(key, text) for key, text in given.items() if key in KNOWN}
    values = {key: value for key, value in values.items() if value != AUTO}
    options, own, human = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for key, value in values.items():
        for table, target in ((OF_SEARCH, options), (OF_QUERY, own), (OF_HUMAN, human)):
            if key in table:
                name, meaning = table[key]
                target[name] = meaning(value)
    weight = own.get("noise_weight", settings.noise_weight)
    if values.keys() & {"rootNoiseEnabled", "rootDirichletNoiseWeight"}:
        is_noisy = values.get("rootNoiseEnabled", settings.search.root_noise > 0.0)
        options["root_noise"] = weight if is_noisy else 0.0
    search, exploration = replace(settings.search, **options), replace(settings.human, **human)
    return replace(settings, search=search, human=exploration, **own)


def _value(key: str, text: str) -> float | bool | str:
    """Parse the value of a key; raises the errors of :func:`override`."""
    word = text.strip()
    if key in _FIXED:
        raise ValueError(f"Cannot change {key} after initialization")
    if key == "reportAnalysisWinratesAs":
        if word.lower() not in PERSPECTIVES:
            raise ValueError(f"Could not parse config value for {key}: {text}")
        return PERSPECTIVES[word.lower()]
    if key == "humanSLProfile":
        return checked_profile(word)
    if key in SWITCHES:
        if word.lower() not in (*TRUE, *FALSE, AUTO):
            raise ValueError(f"Could not parse '{text}' as bool for key '{key}'")
        return AUTO if word.lower() == AUTO else word.lower() in TRUE
    if key not in NUMBERS and key not in COUNTS:
        return word
    kind, name = (int, "int64_t") if key in COUNTS else (float, "double")
    try:
        value = kind(text)
    except ValueError:
        raise ValueError(f"Could not parse '{text}' as {name} for key '{key}'") from None
    low, high = COUNTS[key] if key in COUNTS else NUMBERS[key]
    if value != value:  # not math.isnan, which refuses large integers
        raise ValueError(f"Key '{key}' is nan")
    if not low <= value <= high:
        form = "{:.0f} to {:.0f}" if kind is int else "{:g} to {:g}"
        raise ValueError(f"Key '{key}' must be in the range {form.format(low, high)}")
    if key in NO_EXPLORATION and value > 0:
        raise ValueError(f"Key '{key}' must be 0: human moves are explored at the root alone, and without weight")
    return value


def read_config(path: Path, within: tuple[Path, ...] = ()) -> dict[str, str]:
    """Keys and values of one of KataGo's config files.

    Args:
        within: the files that include this one, outermost first; one that includes itself is refused.
    Raises:
        ValueError: the file cannot be read, or a line is not ``key = value``; one line naming file and line.
    """
    if path in within:
        raise ValueError(f"config file {path} includes itself")
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ValueError(f"config file {path}: cannot be read ({error.strerror or error})") from error
    found: dict[str, str] = {}
    for count, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text.startswith("@include"):
            found |= read_config(path.parent / text.removeprefix("@include").strip(" ="), (*within, path))
        elif text:
            key, equals, value = (part.strip() for part in text.partition("="))
            if not equals or not key:
                raise ValueError(f"config file {path}, line {count}: {text[:60]!r}, expected key = value")
            found[key] = value.strip("\"'")
    return found


def read_pairs(text: str) -> dict[str, str]:
    """Keys and values of ``key=value, key=value``, the format of ``-override-config``.

    Raises:
        ValueError: a part without ``=``.
    """
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals:
            raise ValueError(f"-override-config {part[:60]!r}, expected KEY=VALUE, KEY=VALUE, ...")
        found[key] = value
    return found
