"""Routes beyond question and answer: references, stored answers, saved questions, suggestions."""
