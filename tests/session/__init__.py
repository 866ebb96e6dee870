"""Sessions: edits of annotations lead to what new runs lead to."""
