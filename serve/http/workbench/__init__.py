"""Routes for references, stored answers, feedback, saved questions and suggestions."""
