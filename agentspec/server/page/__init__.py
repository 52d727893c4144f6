"""The page at `/`: what is running, and who guessed each token of the last answers."""
