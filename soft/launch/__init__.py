"""Start any agent from its launch profile, be its controller and the cables of its ports, and leave nothing behind."""
