"""What other programs may ask of Windlass: tools, without a word of any protocol."""
