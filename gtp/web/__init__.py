"""The board in the browser: the server of ``keima play``, its page and its scripts."""
