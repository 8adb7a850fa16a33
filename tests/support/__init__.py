"""Tools that tests share."""
