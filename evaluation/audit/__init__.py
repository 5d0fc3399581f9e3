"""Find stored answers that cite records since retracted, deleted, doubted, revised or corrected."""
