"""The benchmark: our decoding beside transformers', on the same weights and prompts, in one run."""
