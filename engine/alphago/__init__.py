"""``keima alphago``: AlphaGo of 2016 from games to a player and a report, by one command."""
