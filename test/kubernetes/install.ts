// Starts a cluster, and ends it with the tests.
import type { TestProject } from 'vitest/node'
import { startCluster, type TestCluster } from './cluster.ts'

declare module 'vitest' {
  interface ProvidedContext {
    readonly cluster: TestCluster
  }
}

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const { cluster, close } = await startCluster()
  provide('cluster', cluster)
  return close
}
