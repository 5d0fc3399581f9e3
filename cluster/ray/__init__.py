"""Ray's session, its jobs, and who may reach it."""
