"""Scenarios: what is sent to an agent, as data. `loader.load` reads one, `model.Scenario` is one."""
