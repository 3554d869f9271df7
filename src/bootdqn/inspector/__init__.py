"""One recorded episode, or a few, into one page that shows why each action was chosen."""
