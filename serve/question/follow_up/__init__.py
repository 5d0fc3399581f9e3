"""Follow-up questions, completed so that they can be understood alone."""
