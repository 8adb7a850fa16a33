"""What a report says: findings, verdict, summary, plots."""
