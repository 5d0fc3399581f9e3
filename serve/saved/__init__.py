"""Saved data of users: stored answers, feedback, and saved questions that are asked again."""
