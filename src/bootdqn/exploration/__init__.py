"""How an ensemble of Q-heads chooses: pure maths on Q-values of shape (..., K, A), and the strategies built on it."""
