"""How much of everything ``keima alphago`` makes: a tour in minutes, an evening, and the published sizes."""

from dataclasses import dataclass, replace

OWN_SGD = ("--optimizer", "sgd", "--momentum", "0.9", "--warmup", "500", "--schedule", "cosine")
"""Plain networks of 13 and 15 layers learn so; faster ways get stuck"""


@dataclass(frozen=True)
class Preset:
    """Sizes of all stages. Words go to the command of their stage as they are."""

    size: int
    komi: float
    filters: int
    """of the policy networks"""
    value_filters: int
    games: int
    """of the shipped network, where no games of people are given"""
    train: tuple[str, ...]
    """of both networks: optimizer, rate, batch"""
    sl: tuple[str, ...]
    rl: tuple[str, ...]
    decisive: int
    """games of the RL policy against the SL policy, both sampling; of greedy ones a tenth"""
    positions: int
    """for the value network, one a game"""
    held_out: int
    """positions, a half to choose its step by, a half for its test"""
    value: tuple[str, ...]
    rolled_out: int
    """of them, to compare the value network with rollouts"""
    seconds: float
    """a move of the ablation"""
    pair_games: int
    """of each pair of neighbours in the ablation"""


TOUR = Preset(
    size=7,
    komi=9.0,
    filters=24,
    value_filters=24,
    games=1_500,
    train=(*OWN_SGD, "--rate", "0.01", "--batch", "32"),
    sl=("--steps", "1200", "--validate-every", "300"),
    rl=(
        *("--updates", "60", "--rate", "1e-3", "--games", "64", "--pool-every", "20"),
        *("--check-every", "30", "--check-games", "100"),
    ),
    decisive=600,
    positions=6_000,
    held_out=600,
    value=("--steps", "600", "--validate-every", "150"),
    rolled_out=16,
    seconds=0.1,
    pair_games=4,
)
EVENING = Preset(
    size=9,
    komi=7.5,
    filters=32,
    # With 32 filters, half a million positions and 20,000 steps the error is larger by 0.01 to 0.02, in training too.
    value_filters=64,
    games=30_000,
    train=(*OWN_SGD, "--rate", "0.01", "--batch", "64"),
    sl=("--steps", "60000", "--validate-every", "3000"),
    # A rate of 1e-3 undoes the policy: after 60 updates the greedy player wins 25% of its games against the start, at
    # 3e-4 51%. The reward for entropy keeps it from falling by a half in these 60 updates.
    rl=(
        *("--updates", "1500", "--rate", "7e-5", "--entropy", "0.01", "--pool-every", "100"),
        *("--check-every", "100", "--check-games", "400"),
    ),
    decisive=4_000,
    positions=300_000,
    held_out=20_000,
    value=("--steps", "36000", "--validate-every", "2000"),
    rolled_out=600,
    seconds=0.5,
    pair_games=100,
)
PUBLISHED = Preset(
    size=19,
    komi=7.5,
    filters=192,
    value_filters=192,
    games=160_000,
    # The paper's steps have 16 and 32 positions; these have 256, and see as many positions.
    train=(
        *("--optimizer", "sgd", "--momentum", "0", "--rate", "0.01", "--warmup", "2000", "--schedule", "halving"),
        *("--halve-every", "5000000", "--batch", "256", "--workers", "4", "--validate-every", "10000"),
    ),
    sl=("--steps", "21250000"),
    # The paper names no rate. Games have five times the moves of 9x9, and gradients grow with them: at 1e-3 networks of
    # this size were no numbers any more after 20 small mini-batches. 1e-5 is a guess from the evening's rate.
    rl=("--updates", "10000", "--rate", "1e-5", "--games", "128", "--pool-every", "500"),
    decisive=4_000,
    positions=30_000_000,
    held_out=100_000,
    value=("--steps", "6250000"),
    rolled_out=2_000,
    seconds=5.0,
    pair_games=100,
)
PRESETS = {"tour": TOUR, "evening": EVENING, "published": PUBLISHED}
OF_SIZES = {7: "tour", 9: "evening", 19: "published"}
"""What ``--size`` alone means"""


def chosen(name: str | None, size: int | None) -> Preset:
    """The preset of a name or, without one, of a board size; of another board with its sizes kept.

    Raises:
        ValueError: a board size that no preset is for, and no name; one line.
    """
    if name is None:
        if size not in (None, *OF_SIZES):
            raise ValueError(f"no preset is for {size}x{size}: say which with --preset, {', '.join(PRESETS)}")
        name = OF_SIZES[size or EVENING.size]
    preset = PRESETS[name]
    return preset if size in (None, preset.size) else replace(preset, size=size)
