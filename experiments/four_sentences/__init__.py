"""Pictures of the sentences of a quad (two cues, two name orders), with a head's attention and heuristics' choices."""
