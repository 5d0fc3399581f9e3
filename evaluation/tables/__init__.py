"""Result tables over several runs, in the challenges' own columns."""
