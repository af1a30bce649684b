import { describeCollectedFiles } from '../../testing/describe-collected-files.ts'
import { openSimulatedSandbox } from './simulated-sandbox.ts'

describeCollectedFiles('simulated', () => openSimulatedSandbox())
