"""The page where people check and correct predictions, from which the classifier learns."""
