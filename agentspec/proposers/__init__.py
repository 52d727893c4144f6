"""Sources of drafts: the grammar, the history and a small model, and the pool that joins them."""
