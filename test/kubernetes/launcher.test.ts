import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Launcher, WorkerLaunch } from '@aworld-train/core'
import { kubernetesEngine } from '@aworld-train/executors/kubernetes'
import { afterEach, beforeEach, expect, inject, it, vi } from 'vitest'
import { accessTo, manifests, type TestNamespace } from './cluster.ts'

const { createNamespace, kubectl, pushImage } = accessTo(inject('cluster'))

/** The client is installed here. */
const directory = fileURLToPath(new URL('.', import.meta.url))

let folder: string
let namespace: TestNamespace
const launchers: Launcher[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aworld-train-launcher-'))
  namespace = await createNamespace(folder)
  vi.stubEnv('KUBECONFIG', namespace.kubeconfig)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  vi.stubEnv('KUBECONFIG', namespace.kubeconfig)
  await Promise.all(launchers.splice(0).map((launcher) => launcher.stop().catch(() => {})))
  vi.unstubAllEnvs()
  await kubectl('delete', 'namespace', namespace.name, '--wait=false')
  await rm(folder, { recursive: true, force: true })
})

interface Changes extends Partial<Omit<WorkerLaunch, 'options'>> {
  /** What a pod runs in place of a worker. */
  readonly script?: string
  readonly options?: Record<string, unknown>
  readonly url?: string
}

/** A launcher with the rights of the coordinator's account. */
async function launch({ script = 'sleep 600 & wait', options = {}, url = 'https://coordinator.test:8090', ...changes }: Changes = {}) {
  const image = pushImage({ workingDirectory: folder, env: { PATH: '/usr/bin:/bin' } })
  const warnings: string[] = []
  const failures: string[] = []
  const launcher = kubernetesEngine.create({
    ...{ address: null, workerNum: 2, slots: 3, resources: {}, env: {}, directory },
    ...changes,
    options: { image, command: ['sh', '-c', script, 'worker'], ...options },
    worker: () => ({ command: [], env: {}, url, token: 'the-secret', agent: join(directory, 'agents/agent.ts#agent') }),
    onWarning: (message) => warnings.push(message),
    onExit: () => undefined,
    onFailed: ({ message }) => failures.push(message),
  })
  launchers.push(launcher)
  return { launcher, warnings, failures }
}

interface PodObject {
  readonly metadata: { readonly name: string; readonly uid: string; readonly annotations: Readonly<Record<string, string>> }
  readonly spec: { readonly containers: readonly { readonly env: readonly { readonly name: string; readonly value?: string }[] }[] }
  readonly status: { readonly phase: string }
}

const running = (launcher: Launcher) => async () => (await launcher.status()).filter(({ state }) => state === 'running').length

async function leftovers() {
  const all = await Promise.all(['jobs', 'pods', 'secrets'].map((kind) => namespace.get(kind)))
  return all.flat().length
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

it('workers run as pods that know their coordinator; one that is killed and one that is evicted start again; scale and stop leave nothing', async () => {
  const { launcher, warnings, failures } = await launch({
    env: { GREETING: 'costs $(HOME)' },
    resources: { requests: { cpu: '0.1' } },
    script: 'echo "$@"; echo "$GREETING $AWORLD_TRAIN_COORDINATOR_TOKEN"; trap "echo leaving; exit 143" TERM; sleep 600 & wait',
  })
  expect(await launcher.plan()).toEqual([
    expect.stringMatching(/^2 workers as pods of a Job in namespace "test-\w+" of https:.* with image registry\.test/),
  ])
  expect(await leftovers()).toBe(0)
  await launcher.start()
  await expect.poll(running(launcher)).toBe(2)
  const pods = await namespace.get<PodObject>('pods')
  const [first, second] = [0, 1].map(
    (index) => pods.find(({ metadata }) => metadata.annotations['batch.kubernetes.io/job-completion-index'] === String(index))!,
  )
  expect((await namespace.log(first!.metadata.name)).split('\n')).toEqual([
    `--coordinator https://coordinator.test:8090 --agent ./agents/agent.ts#agent --slots 3 --name ${first!.metadata.name} --away 3600 --signal-exit-code 143 --token-env AWORLD_TRAIN_COORDINATOR_TOKEN`,
    'costs $(HOME) the-secret',
    '',
  ])
  expect(JSON.stringify(pods)).not.toContain('the-secret')

  process.kill(-(await namespace.pid(first!.metadata.name)), 'SIGKILL')
  await expect
    .poll(() => warnings)
    .toEqual([
      `Worker "${first!.metadata.name}" ended with code 137 and is started again. It printed last: ${(await namespace.log(first!.metadata.name)).trim()}`,
    ])
  await namespace.evict(second!.metadata.name)
  await expect
    .poll(async () => (await launcher.status()).map(({ state, restarts }) => [state, restarts]))
    .toEqual([
      ['running', 1],
      ['running', 1],
    ])
  expect(warnings.join('\n')).toContain(`Worker "${second!.metadata.name}" was ended by its cluster (EvictionByEvictionAPI)`)
  const [job] = await namespace.get<{ status: { failed?: number } }>('jobs')
  // The one that was killed; an eviction is no failure of the worker.
  const again = await namespace.get<PodObject>('pods')
  const failures64 = again.map(({ metadata }) => Number(metadata.annotations['batch.kubernetes.io/job-index-failure-count'] ?? 0))
  expect([job!.status.failed, Math.max(...failures64)]).toEqual([1, 1])

  await launcher.scale(4)
  await expect.poll(running(launcher)).toBe(4)
  const last = (await launcher.status())[3]!
  const pid = await namespace.pid(last.name)
  await launcher.scale(1)
  expect(await launcher.status()).toHaveLength(1)
  await expect.poll(() => isAlive(pid)).toBe(false)
  await launcher.scale(2)
  await expect.poll(running(launcher)).toBe(2)

  const pids = await Promise.all((await launcher.status()).map(({ name }) => namespace.pid(name)))
  await launcher.stop()
  expect(await launcher.status()).toEqual([])
  await expect.poll(leftovers).toBe(0)
  expect(pids.filter(isAlive)).toEqual([])
  expect(failures).toEqual([])
})

it('exit code 64 of one worker ends all, with what it printed last', async () => {
  const { launcher, failures } = await launch({
    script: 'sleep 1; case $HOSTNAME in *-0-*) echo no such flag >&2; exit 64;; esac; sleep 600',
  })
  await launcher.start()
  await expect.poll(() => failures).toEqual([expect.stringMatching(/ended with code 64\. It printed last: no such flag$/)])
  await expect.poll(leftovers).toBe(0)
})

it('a coordinator that starts again ends the workers of its earlier life, and of no other', async () => {
  const [earlier, other] = [await launch(), await launch({ url: 'https://other.test:8090' })]
  await Promise.all([earlier.launcher.start(), other.launcher.start()])
  const { launcher } = await launch()
  await launcher.start()
  await expect.poll(running(launcher)).toBe(2)
  await expect.poll(() => earlier.launcher.status()).toEqual([])
  await expect.poll(running(other.launcher)).toBe(2)
})

it.each<[string, Changes, RegExp]>([
  [
    'an image that is not there',
    { options: { image: 'registry.test/none:1' } },
    /image "registry\.test\/none:1" .* cannot be pulled .*executor\.options\.image/,
  ],
  [
    'a Secret that is not there',
    { options: { secrets: { KEY: { name: 'none', key: 'key' } } } },
    /cannot be made \(CreateContainerConfigError\): .*secrets.*none.*executor\.options\.secrets/,
  ],
  [
    'a program that is not there',
    { options: { command: ['none'] } },
    /could not be started \(code 128\).*executor\.options\.command.*none/,
  ],
  [
    'a worker that needs more memory than it may have',
    {
      script: 'exec perl -e \'$text = "x" x 100_000_000; sleep 600\'',
      resources: { limits: { memory: '32Mi' } },
      options: { backoffLimit: 1 },
      workerNum: 1,
    },
    /has failed \(\w+\): .*used more memory than it may, .*executor\.resources\.limits\.memory/,
  ],
])('%s is named with its remedy, and nothing is left', async (_, changes, message) => {
  const { launcher, failures } = await launch(changes)
  await launcher.start()
  await expect.poll(() => failures, { timeout: 120_000 }).toEqual([expect.stringMatching(message)])
  await expect.poll(leftovers).toBe(0)
})

it.each<[string, Changes, RegExp]>([
  [
    'a field that pods do not have',
    { options: { pod: { nodeSelectr: { zone: 'a' } } } },
    /Kubernetes knows no "nodeSelectr" of a pod; correct executor\.options\.pod/,
  ],
  ['a quantity that is none', { resources: { limits: { memory: 'much' } } }, /refused to create jobs .*quantities must match/],
  [
    'a namespace that is not there',
    { options: { namespace: 'none' } },
    /does not let this account create jobs in namespace "none".*access\.yaml/,
  ],
  ['a context that is not there', { address: 'none' }, /executor\.address is "none", which is no context of the kubeconfig: test\./],
])('%s is refused before anything is started', async (_, changes, message) => {
  const { launcher } = await launch(changes)
  await expect(launcher.plan()).rejects.toThrow(message)
  expect(await leftovers()).toBe(0)
})

it('an account without the role is refused by name, and a Job that gets no Secret is taken back', async () => {
  await kubectl('patch', 'role', 'aworld-train', '-n', namespace.name, '--type=json', '-p', '[{"op":"remove","path":"/rules/2"}]')
  const withoutSecrets = await launch()
  await expect(withoutSecrets.launcher.start()).rejects.toThrow(/does not let this account create secrets .*access\.yaml/)
  await expect.poll(leftovers).toBe(0)
  await kubectl('delete', 'rolebinding', 'aworld-train', '-n', namespace.name)
  const without = await launch()
  await expect(without.launcher.plan()).rejects.toThrow(/does not let this account create jobs .*access\.yaml/)
})

it('the role lets the coordinator do what its launcher does, and nothing else', async () => {
  const rights = (place: string) =>
    kubectl('auth', 'can-i', '--list', `--as=system:serviceaccount:${namespace.name}:aworld-train`, '-n', place, '--no-headers')
  // What every account may: ask what it may, and read what the server says about itself.
  const own = (text: string) =>
    text
      .split('\n')
      .filter((line) => !/^self|^ /.test(line))
      .map((line) => line.replace(/ +/g, ' '))
  expect(own(await rights(namespace.name)).sort()).toEqual([
    'jobs.batch [] [] [create get list patch delete]',
    'pods [] [] [list]',
    'secrets [] [] [create]',
  ])
  expect(own(await rights('default'))).toEqual([])
})

it.each(['base', 'serve', 'train'])('the manifests of %s are what the cluster takes', async (name) => {
  const directoryOf = join(manifests, name)
  const lines = (await kubectl('apply', '-n', namespace.name, '--dry-run=server', '-k', directoryOf)).split('\n')
  expect(lines.length).toBeGreaterThan(4)
  for (const line of lines) expect(line).toMatch(/(?:created|configured|unchanged) \(server dry run\)$/)
})
