"""Commands on what users keep: feedback and saved questions."""
