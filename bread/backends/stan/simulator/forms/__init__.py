"""Laws that a program sums out or writes as residuals, and how to draw from them."""
