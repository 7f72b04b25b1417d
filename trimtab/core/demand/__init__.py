"""What each signal demanded, at any spacing of samples: kept, restored after a restart, handed to forecasts."""
