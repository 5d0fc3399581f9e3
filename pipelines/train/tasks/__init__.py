"""What each small model learns."""
