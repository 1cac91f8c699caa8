"""Results as text for one reader each."""
