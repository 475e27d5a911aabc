"""What a user should know before trusting a posterior: findings in plain words."""
