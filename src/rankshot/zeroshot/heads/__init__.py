"""The heads: each turns scores and rankings into a decision over new classes."""
