"""Dream Catcher: merges two versions of one being; contradicting values are kept aside."""
