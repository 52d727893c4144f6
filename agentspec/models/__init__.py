"""Models behind one seam: rows of tokens in, logits out, K/V columns in between."""
