import { openSimulatedSandbox } from '@aworld-train/tools/sandbox'
import { describeHiddenTests } from './support/describe-hidden-tests.ts'

// Rewards verify in the best tier of the machine; here the agent is in the simulated one.
describeHiddenTests('simulated', () => openSimulatedSandbox())
