"""Which path is followed: candidates, what they cost, which is cheapest."""
