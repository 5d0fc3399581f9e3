"""Commands for stored user data: feedback and saved questions."""
