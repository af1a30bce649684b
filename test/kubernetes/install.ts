// Builds or finds the control plane, starts it with one node, and ends both with the tests.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { installLocked } from '../support/install-locked.ts'
import { startControlPlane } from './control-plane.ts'
import { startNode } from './node-agent.ts'
import { findControlPlanePrograms } from './programs.ts'

/** What tests know of the cluster that they run in. */
export interface TestCluster {
  /** Program whose first argument may be `kubectl`. */
  readonly kubernetes: string
  readonly adminKubeconfig: string
  readonly server: string
  readonly certificate: string
  /** A folder with an image for each file, as `pushImage` writes them. */
  readonly registry: string
  /** A folder with the process id and the log of each pod: `NAMESPACE_POD.pid`, `NAMESPACE_POD.log`. */
  readonly pods: string
}

declare module 'vitest' {
  interface ProvidedContext {
    readonly cluster: TestCluster
  }
}

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  await installLocked(fileURLToPath(new URL('.', import.meta.url)))
  const programs = await findControlPlanePrograms()
  const directory = await mkdtemp(join(tmpdir(), 'aworld-train-kubernetes-'))
  const plane = await startControlPlane(programs, directory)
  const node = await startNode({ ...plane, directory })
  const { adminKubeconfig, server, certificate } = plane
  provide('cluster', { kubernetes: programs.kubernetes, adminKubeconfig, server, certificate, registry: node.registry, pods: node.pods })
  return async () => {
    await node.close()
    await plane.close()
    await rm(directory, { recursive: true, force: true })
  }
}
