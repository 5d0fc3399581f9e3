"""What users keep: stored answers, feedback, and saved questions that are asked again."""
