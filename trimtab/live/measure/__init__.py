"""measure: samples, usage, start-up times and forecasts."""
