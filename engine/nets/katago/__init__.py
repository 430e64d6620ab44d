"""KataGo's network files, and the networks in them."""
