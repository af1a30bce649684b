import { openSimulatedSandbox } from '../sandbox/simulated/simulated-sandbox.ts'
import { describeCopies } from '../testing/describe-copies.ts'

describeCopies('simulated', () => openSimulatedSandbox())
