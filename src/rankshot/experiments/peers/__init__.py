"""Zero-shot methods with closed forms that retrain on features: peers of our heads."""
