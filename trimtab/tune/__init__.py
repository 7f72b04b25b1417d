"""Policy against history: candidates, the rolling backtest, and the gate that lets a better one in."""
