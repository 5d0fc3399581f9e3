"""Ray sessions, jobs and access control."""
