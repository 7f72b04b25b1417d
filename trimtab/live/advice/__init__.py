"""advice: the controllers of Analytics and Recommendation, in rounds beside the ticks."""
