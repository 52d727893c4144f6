"""What each round of an answer drafted, and what came of it, for people to see."""
