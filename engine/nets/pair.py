"""Two networks that play as one, as AlphaGo's did: a policy network and a value network."""

from torch import Tensor

from engine.nets.network import NetOutput, Network, NetworkSpec

ENCODERS = ("alphago-48", "alphago-49")
"""What policy and value network read; the second is the first and one plane more"""
POLICY_PLANES = 48


class AlphaGoPair:
    """AlphaGo's policy network and value network behind one Network interface."""

    def __init__(self, policy: Network, value: Network):
        """Join two networks on one device.

        Raises:
            ValueError: they are no policy and value network of AlphaGo's planes for the same boards; one line.
        """
        first, second = policy.spec, value.spec
        if (first.encoder, second.encoder) != ENCODERS or not first.has_policy or not second.has_value:
            raise ValueError(
                f"{first.name}+{second.name}: encoders {first.encoder} and {second.encoder}, expected a policy "
                f"network of {ENCODERS[0]} and a value network of {ENCODERS[1]}"
            )
        sizes = max(first.min_size, second.min_size), min(first.max_size, second.max_size)
        if sizes[0] > sizes[1]:
            raise ValueError(
                f"{first.name}+{second.name}: boards of {first.min_size} to {first.max_size} and of "
                f"{second.min_size} to {second.max_size}, expected the same"
            )
        self.spec = NetworkSpec(f"{first.name}+{second.name}", second.encoder, *sizes)
        self.device, self.merges = policy.device, policy.merges
        self._policy, self._value = policy, value

    def evaluate(self, planes: Tensor, globals_: Tensor) -> NetOutput:
        """See :meth:`engine.nets.network.Network.evaluate`; planes are those of the value network's encoder."""
        policy = self._policy.evaluate(planes[:, :POLICY_PLANES], globals_).policy
        return NetOutput(policy, self._value.evaluate(planes, globals_).value)
