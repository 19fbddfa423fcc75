"""Names of classes: labels as they come, one matcher of spellings, words to look up."""
