"""What every training framework needs of the bridge: settings, greeting, rows, ledger, rollouts and engines. Imports no framework."""
