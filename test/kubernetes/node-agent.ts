import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, open, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ApiClient, createApiClient } from './api-client.ts'

const name = 'node1'
const pollMs = 200
/** How long after a failure a container is tried again. */
const retryMs = 1_000
const leaseMs = 10_000
/** Longest termination message, as the kubelet has it. */
const messageBytes = 2_048

/** What a file of the registry says about an image: where its files are on this machine, and its variables. */
export interface Image {
  readonly workingDirectory: string
  readonly env: Readonly<Record<string, string>>
}

/** File of an image in the registry. */
export const imageFile = (image: string) => `${encodeURIComponent(image)}.json`

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string }
    readonly secretKeyRef?: { readonly name: string; readonly key: string }
  }
}

interface Pod {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly deletionTimestamp?: string
    readonly deletionGracePeriodSeconds?: number
  }
  readonly spec: {
    readonly containers: readonly [
      {
        readonly name: string
        readonly image: string
        readonly command?: readonly string[]
        readonly args?: readonly string[]
        readonly env?: readonly Variable[]
        readonly resources?: { readonly limits?: { readonly memory?: string } }
      },
    ]
  }
  readonly status: { readonly phase?: string }
}

interface Running {
  readonly pod: Pod
  process: ChildProcess | null
  isTerminating: boolean
  isOutOfMemory: boolean
}

export interface TestNode {
  readonly registry: string
  readonly pods: string
  close(): Promise<void>
}

const pathOf = ({ metadata: { namespace, name: pod } }: Pod) => `/api/v1/namespaces/${namespace}/pods/${pod}`

/** `256Mi` and the like in bytes. */
function toBytes(quantity: string): number {
  const [, number, unit = ''] = /^(\d+)(Ki|Mi|Gi|k|M|G)?$/.exec(quantity)!
  return Number(number) * { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, k: 1e3, M: 1e6, G: 1e9 }[unit]!
}

/** Memory of a process and of those that it started, in bytes, as /proc says. */
async function residentBytes(pid: number): Promise<number> {
  const [status, children] = await Promise.all(
    [`/proc/${pid}/status`, `/proc/${pid}/task/${pid}/children`].map((file) => readFile(file, 'utf8').catch(() => '')),
  )
  const own = Number(/^VmRSS:\s+(\d+)/m.exec(status!)?.[1] ?? 0) * 1_024
  const others = await Promise.all(
    children!
      .split(' ')
      .filter(Boolean)
      .map((child) => residentBytes(Number(child))),
  )
  return others.reduce((sum, bytes) => sum + bytes, own)
}

/**
 * A node of the cluster that does what a kubelet does for pods of one container, as processes of this machine: it has an
 * identity of a node, whose rights the API server checks; reads pods that the scheduler placed on it, and the Secrets that they
 * name; runs, signals and kills them; and reports their phase, exit code and last words. It knows no cgroups, images or networks: an image is a
 * file that names a folder, and memory above a limit is seen by asking.
 */
export async function startNode(plane: { server: string; certificate: string; nodeToken: string; directory: string }): Promise<TestNode> {
  const api = createApiClient(plane.server, await readFile(plane.certificate, 'utf8'), plane.nodeToken)
  const [registry, pods] = [join(plane.directory, 'registry'), join(plane.directory, 'pods')]
  await Promise.all([registry, pods].map((folder) => mkdir(folder, { recursive: true })))
  await register(api)
  const running = new Map<string, Running>()
  let isClosed = false
  const fileOf = ({ metadata }: Pod, kind: string) => join(pods, `${metadata.namespace}_${metadata.name}.${kind}`)

  const report = (pod: Pod, phase: string, state: object, ready = false) => {
    const { name: container, image } = pod.spec.containers[0]
    const status = String(ready)
    return api.patch(`${pathOf(pod)}/status`, {
      status: {
        phase,
        conditions: ['Initialized', 'ContainersReady', 'Ready'].map((type) => ({
          type,
          status: type === 'Initialized' ? 'True' : capital(status),
        })),
        containerStatuses: [{ name: container, image, imageID: image, ready, restartCount: 0, state }],
      },
    })
  }

  async function variableOf(
    { name: key, value, valueFrom }: Variable,
    pod: Pod,
    all: Readonly<Record<string, string>>,
  ): Promise<[string, string]> {
    const reference = valueFrom?.secretKeyRef
    if (reference) {
      const { data } = await api.get<{ data: Record<string, string> }>(
        `/api/v1/namespaces/${pod.metadata.namespace}/secrets/${reference.name}`,
      )
      if (!(reference.key in data))
        throw new Error(`couldn't find key ${reference.key} in Secret ${pod.metadata.namespace}/${reference.name}`)
      return [key, Buffer.from(data[reference.key]!, 'base64').toString()]
    }
    const path = valueFrom?.fieldRef?.fieldPath
    if (path === undefined) return [key, expand(value ?? '', all)]
    if (path === 'metadata.name') return [key, pod.metadata.name]
    const [, part, entry] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? []
    const text = pod.metadata[part as 'labels' | 'annotations']?.[entry!]
    if (text === undefined) throw new Error(`the field ${path} is not one that this node knows`)
    return [key, text]
  }

  async function variablesOf(pod: Pod, env: readonly Variable[]): Promise<Record<string, string>> {
    let variables: Record<string, string> = {}
    for (const variable of env) {
      const [key, value] = await variableOf(variable, pod, variables)
      variables = { ...variables, [key]: value }
    }
    return variables
  }

  async function run(entry: Running): Promise<void> {
    const { pod } = entry
    const { image, command = [], args = [], env = [], resources } = pod.spec.containers[0]
    const content = await readFile(join(registry, imageFile(image)), 'utf8').catch(() => null)
    if (content === null) {
      const message = `failed to pull and unpack image "${image}": not found`
      await report(pod, 'Pending', { waiting: { reason: 'ErrImagePull', message } })
      await sleep(pollMs)
      await report(pod, 'Pending', { waiting: { reason: 'ImagePullBackOff', message: `Back-off pulling image "${image}": ${message}` } })
      return
    }
    const { workingDirectory, env: imageEnv } = JSON.parse(content) as Image
    let variables: Record<string, string> | null = null
    while (variables === null && !isClosed && running.get(pod.metadata.uid) === entry) {
      // As a kubelet does: the server may not know yet that this node may read the Secret.
      variables = await variablesOf(pod, env).catch(async ({ message }: Error) => {
        await report(pod, 'Pending', { waiting: { reason: 'CreateContainerConfigError', message } })
        await sleep(retryMs)
        return null
      })
    }
    if (variables === null) return
    const [file, ...rest] = [...command, ...args].map((part) => expand(part, variables!)) as [string, ...string[]]
    const log = openSync(fileOf(pod, 'log'), 'w')
    const child = spawn(file, rest, {
      cwd: workingDirectory,
      env: { HOSTNAME: pod.metadata.name, HOME: pods, ...imageEnv, ...variables },
      stdio: ['ignore', log, log],
      detached: true,
    })
    closeSync(log)
    entry.process = child
    const ended = new Promise<{ exitCode: number; reason: string; message?: string }>((resolve) => {
      child.once('error', ({ message }) =>
        resolve({ exitCode: 128, reason: 'StartError', message: `failed to create containerd task: ${message}` }),
      )
      child.once('exit', (code, signal) => {
        const exitCode = code ?? 128 + (signals[signal!] ?? 0)
        resolve({ exitCode, reason: entry.isOutOfMemory ? 'OOMKilled' : exitCode === 0 ? 'Completed' : 'Error' })
      })
    })
    if (child.pid !== undefined) {
      await writeFile(fileOf(pod, 'pid'), String(child.pid))
      await report(pod, 'Running', { running: { startedAt: new Date().toISOString() } }, true)
      if (resources?.limits?.memory !== undefined) void watchMemory(entry, toBytes(resources.limits.memory))
    }
    const end = await ended
    // What it started ends with it, as with the namespace of a container.
    killGroup(child, 'SIGKILL')
    entry.process = null
    const message = end.message ?? (end.exitCode === 0 ? '' : await lastWords(fileOf(pod, 'log')))
    await report(pod, end.exitCode === 0 ? 'Succeeded' : 'Failed', { terminated: { ...end, message } })
  }

  async function watchMemory(entry: Running, limit: number): Promise<void> {
    for (
      let child = entry.process;
      child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
      child = entry.process
    ) {
      if ((await residentBytes(child.pid)) > limit) {
        entry.isOutOfMemory = true
        killGroup(child, 'SIGKILL')
        return
      }
      await sleep(pollMs)
    }
  }

  async function terminate(entry: Running, graceSeconds: number): Promise<void> {
    entry.isTerminating = true
    entry.process?.kill('SIGTERM')
    const deadline = performance.now() + graceSeconds * 1_000
    while (entry.process && performance.now() < deadline && !isClosed) await sleep(50)
    if (entry.process) killGroup(entry.process, 'SIGKILL')
  }

  async function look(): Promise<void> {
    const { items } = await api.get<{ items: readonly Pod[] }>(`/api/v1/pods?fieldSelector=spec.nodeName=${name}`)
    const there = new Set(items.map(({ metadata }) => metadata.uid))
    for (const pod of items) {
      const { uid, deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata
      const entry = running.get(uid)
      if (deletionTimestamp === undefined) {
        if (entry || pod.status.phase !== 'Pending') continue
        const started: Running = { pod, process: null, isTerminating: false, isOutOfMemory: false }
        running.set(uid, started)
        run(started).catch(complain)
      } else if (entry?.process) {
        if (!entry.isTerminating) terminate(entry, deletionGracePeriodSeconds).catch(complain)
      } else {
        running.delete(uid)
        if (entry && !['Succeeded', 'Failed'].includes(pod.status.phase ?? '') && !entry.isTerminating)
          await report(pod, 'Failed', { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } })
        await api.delete(pathOf(pod), { gracePeriodSeconds: 0, preconditions: { uid } })
      }
    }
    for (const [uid, { process: child }] of running) {
      if (there.has(uid)) continue
      running.delete(uid)
      if (child) killGroup(child, 'SIGKILL')
    }
  }

  const complain = (error: Error) => {
    if (!isClosed) console.error(`node: ${error.message}`)
  }
  const lease = setInterval(() => renewLease(api).catch(complain), leaseMs)
  const loop = (async () => {
    while (!isClosed) {
      await look().catch(complain)
      await sleep(pollMs)
    }
  })()
  return {
    registry,
    pods,
    async close() {
      isClosed = true
      clearInterval(lease)
      await loop
      for (const { process: child } of running.values()) if (child) killGroup(child, 'SIGKILL')
      await rm(pods, { recursive: true, force: true })
    },
  }
}

const signals: Partial<Record<NodeJS.Signals, number>> = { SIGINT: 2, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 }

const capital = (text: string) => `${text[0]!.toUpperCase()}${text.slice(1)}`

/** `$(NAME)` by its value, `$$(NAME)` by `$(NAME)`. */
const expand = (text: string, variables: Readonly<Record<string, string>>) =>
  text.replace(/\$(\$?)\(([\w.-]+)\)/g, (whole, dollar: string, key: string) => (dollar ? `$(${key})` : (variables[key] ?? whole)))

function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {}
}

/** The end of a log, for `terminationMessagePolicy: FallbackToLogsOnError`. */
async function lastWords(file: string): Promise<string> {
  await using handle = await open(file)
  const { size } = await handle.stat()
  const start = Math.max(0, size - messageBytes)
  const { buffer } = await handle.read({ position: start, buffer: Buffer.alloc(size - start) })
  return buffer.toString()
}

async function register(api: ApiClient): Promise<void> {
  const resources = { cpu: '8', memory: '16Gi', pods: '110' }
  await api.post('/api/v1/nodes', { metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' } } })
  await api.patch(`/api/v1/nodes/${name}/status`, {
    status: { capacity: resources, allocatable: resources, conditions: [{ type: 'Ready', status: 'True', reason: 'Started' }] },
  })
  await api.post('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', {
    metadata: { name },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: microTime() },
  })
}

const renewLease = (api: ApiClient) =>
  api.patch(`/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`, { spec: { renewTime: microTime() } })

/** A time as Kubernetes has it, with microseconds. */
const microTime = () => new Date().toISOString().replace('Z', '000Z')
