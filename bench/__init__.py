"""Measurements: matches between GTP engines and the ratings that follow from them; one runnable module each."""
