import { openSimulatedSandbox } from '@aworld-train/sandbox'
import { describeLeasedShells } from '../testing/describe-leased-shells.ts'

describeLeasedShells('simulated', openSimulatedSandbox)
