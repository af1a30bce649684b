import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { installLocked } from '../support/install-locked.ts'
import { repository } from '../support/run-cli.ts'
import { startControlPlane, writeKubeconfig } from './control-plane.ts'
import { type Image, imageFile, startNode } from './node-agent.ts'
import { findControlPlanePrograms } from './programs.ts'

const run = promisify(execFile)
const deadlineMs = 90_000

export const manifests = join(repository, 'packages/executors/manifests')
const here = fileURLToPath(new URL('.', import.meta.url))
/** Packages that are installed for a cluster: the client of Kubernetes. */
export const clientPackages = join(here, 'node_modules')

/** What a process needs to know of a cluster that it uses. */
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

/** Builds or finds the control plane, and starts it with one node. */
export async function startCluster(): Promise<{ readonly cluster: TestCluster; close(): Promise<void> }> {
  await installLocked(here)
  const programs = await findControlPlanePrograms()
  const directory = await mkdtemp(join(tmpdir(), 'aworld-train-kubernetes-'))
  const plane = await startControlPlane(programs, directory)
  const node = await startNode({ ...plane, directory })
  const { adminKubeconfig, server, certificate } = plane
  return {
    cluster: { kubernetes: programs.kubernetes, adminKubeconfig, server, certificate, registry: node.registry, pods: node.pods },
    async close() {
      await node.close()
      await plane.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Variables with which our programs run from source, with the same arithmetic everywhere. */
export const sources = { AWORLD_TRAIN_SIMD: 'plain', NO_COLOR: '1' }

export interface TestNamespace {
  readonly name: string
  /** Kubeconfig of the coordinator's account: of the manifests' base, with its role and no other. */
  readonly kubeconfig: string
  /** Objects of a kind, as `kubectl get` shows them in JSON. */
  get<Item>(kind: string): Promise<readonly Item[]>
  /** What a pod printed. */
  log(pod: string): Promise<string>
  /** Process of a pod. */
  pid(pod: string): Promise<number>
  evict(pod: string): Promise<void>
}

/** What is done with a cluster. */
export function accessTo({ kubernetes, adminKubeconfig, registry, pods, ...cluster }: TestCluster) {
  /** Runs kubectl as an account that may do everything, and resolves to what it printed. */
  async function kubectl(...args: readonly string[]): Promise<string> {
    const { stdout } = await run(kubernetes, ['kubectl', '--kubeconfig', adminKubeconfig, ...args], { timeout: deadlineMs })
    return stdout.trim()
  }

  /** An image under a name that nobody else has: a folder of this machine, and variables. */
  function pushImage(image: Image): string {
    const name = `registry.test/${randomUUID().slice(0, 8)}:1`
    writeFileSync(join(registry, imageFile(name)), JSON.stringify(image))
    return name
  }

  return {
    kubectl,
    pushImage,

    /** An image with a project in which `aworld-train` runs from source. `folder` is for that program. */
    pushProject(folder: string, project: string): string {
      const command = join(folder, 'aworld-train')
      writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${join(repository, 'packages/cli/src/main.ts')} "$@"\n`, { mode: 0o755 })
      return pushImage({ workingDirectory: project, env: { PATH: `${folder}:/usr/bin:/bin`, ...sources } })
    },

    /** A namespace with the base of the manifests applied. `folder` is for its kubeconfig. */
    async createNamespace(folder: string): Promise<TestNamespace> {
      const name = `test-${randomUUID().slice(0, 8)}`
      await kubectl('create', 'namespace', name)
      await kubectl('apply', '-n', name, '-k', join(manifests, 'base'))
      const token = await kubectl('create', 'token', 'aworld-train', '-n', name)
      const file = (pod: string, kind: string) => readFile(join(pods, `${name}_${pod}.${kind}`), 'utf8')
      return {
        name,
        kubeconfig: await writeKubeconfig(join(folder, `${name}.kubeconfig`), cluster, token, name),
        async get<Item>(kind: string) {
          return (JSON.parse(await kubectl('get', kind, '-n', name, '-o', 'json')) as { items: readonly Item[] }).items
        },
        log: (pod) => file(pod, 'log'),
        pid: async (pod) => Number(await file(pod, 'pid')),
        async evict(pod) {
          const eviction = join(folder, `${pod}.json`)
          await writeFile(eviction, JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace: name } }))
          await kubectl('create', '--raw', `/api/v1/namespaces/${name}/pods/${pod}/eviction`, '-f', eviction)
        },
      }
    },
  }
}
