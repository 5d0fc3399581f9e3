"""Result tables over several runs, with the challenges' own columns."""
