"""``keima zero``: AlphaGo Zero from random play, by one command: the loop on a terminal, its ladder and its page."""
