"""References adapted by importance sampling."""
