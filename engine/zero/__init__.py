"""``keima zero``: AlphaGo Zero from random play, by one command: the loop, its ladder, its options and its page."""
