"""``keima zero``: AlphaGo Zero from random play, by one command: the loop on a terminal, its ladder and its page."""

from gtp.startup import calm_openmp

# Before torch is imported. Steps on small boards are short, and threads that spin where they wait for each other take
# ten times the processor's time as soon as anything else runs: 213 ms a step instead of 21 on 5x5.
calm_openmp()
