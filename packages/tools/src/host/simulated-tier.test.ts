import { openSimulatedSandbox } from '../sandbox/simulated/simulated-sandbox.ts'
import { describeLeasedShells } from '../testing/describe-leased-shells.ts'

describeLeasedShells('simulated', openSimulatedSandbox)
