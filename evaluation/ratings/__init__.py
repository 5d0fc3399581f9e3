"""Human ratings of answers: a blind rating sheet, and the agreement of two raters."""
