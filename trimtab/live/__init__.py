"""live: the operator. It looks, gathers, decides by the core, applies, and says what it did."""
