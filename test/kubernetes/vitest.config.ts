// Kubernetes: a real API server with its controllers and scheduler, and a node that runs pods as processes of this machine.
import { suite } from '../../vitest.base.ts'

export default suite('kubernetes', {
  globalSetup: ['test/kubernetes/install.ts'],
  testTimeout: 300_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 90_000 } },
})
