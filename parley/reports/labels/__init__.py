"""What people label of a run: the items, which of them are drawn, what raters answer, and labels as files."""
