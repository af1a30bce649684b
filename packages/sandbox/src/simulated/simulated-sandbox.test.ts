import { describeSandbox } from '@aworld-train/testing'
import { openSimulatedSandbox } from './simulated-sandbox.ts'

describeSandbox({
  name: 'simulated',
  create: () => openSimulatedSandbox(),
  skip: [
    {
      reason: 'the output of its commands is text: bytes that are no UTF-8 are read as Latin-1',
      tests: ['replaces bytes that are no UTF-8'],
    },
  ],
})
