import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ControlPlanePrograms } from './programs.ts'

export interface ControlPlane {
  readonly server: string
  /** File with the certificate of the server, which signs itself. */
  readonly certificate: string
  /** Kubeconfig of an account that may do everything. */
  readonly adminKubeconfig: string
  readonly nodeToken: string
  close(): Promise<void>
}

const startMs = 120_000

export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))))
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

/** A kubeconfig for one token. */
export async function writeKubeconfig(
  file: string,
  { server, certificate }: Pick<ControlPlane, 'server' | 'certificate'>,
  token: string,
  namespace = 'default',
) {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority': certificate } }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace } }],
    'current-context': 'test',
  }
  await writeFile(file, JSON.stringify(config), { mode: 0o600 })
  return file
}

/** Starts etcd, API server, controllers and scheduler on loopback, with everything that they write in `directory`. */
export async function startControlPlane({ etcd, kubernetes }: ControlPlanePrograms, directory: string): Promise<ControlPlane> {
  const pki = join(directory, 'pki')
  await mkdir(pki, { recursive: true })
  const [client, peer, port, controllers, scheduler] = (await freePorts(5)) as [number, number, number, number, number]
  const keys = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const [privateKey, publicKey] = [join(pki, 'accounts.key'), join(pki, 'accounts.pub')]
  await writeFile(privateKey, keys.privateKey, { mode: 0o600 })
  await writeFile(publicKey, keys.publicKey)
  const tokens = {
    admin: { user: 'admin', group: 'system:masters', token: randomBytes(16).toString('hex') },
    controllers: { user: 'system:kube-controller-manager', group: '', token: randomBytes(16).toString('hex') },
    scheduler: { user: 'system:kube-scheduler', group: '', token: randomBytes(16).toString('hex') },
    node: { user: 'system:node:node1', group: 'system:nodes', token: randomBytes(16).toString('hex') },
  }
  const rows = Object.values(tokens).map(({ token, user, group }) => `${token},${user},${user}${group && `,"${group}"`}`)
  await writeFile(join(directory, 'tokens.csv'), `${rows.join('\n')}\n`, { mode: 0o600 })
  const server = `https://127.0.0.1:${port}`
  const certificate = join(pki, 'apiserver.crt')

  const children: ChildProcess[] = []
  const run = (name: string, file: string, args: readonly string[]) => {
    const log = createWriteStream(join(directory, `${name}.log`))
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch } })
    child.stdout.pipe(log)
    child.stderr.pipe(log)
    children.push(child)
  }
  async function close(): Promise<void> {
    // The store last: the others would log its loss until they end.
    for (const child of children.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
    }
  }

  try {
    const [clientUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`]
    run('etcd', etcd, [
      ...['--data-dir', join(directory, 'etcd'), '--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `default=${peerUrl}`],
    ])
    run('kube-apiserver', kubernetes, [
      ...['kube-apiserver', '--etcd-servers', clientUrl, '--bind-address', '127.0.0.1', '--secure-port', String(port)],
      ...['--advertise-address', '127.0.0.1', '--endpoint-reconciler-type', 'none', '--cert-dir', pki],
      ...[
        '--token-auth-file',
        join(directory, 'tokens.csv'),
        '--authorization-mode',
        'Node,RBAC',
        '--enable-admission-plugins',
        'NodeRestriction',
      ],
      ...['--service-cluster-ip-range', '10.0.0.0/24', '--service-account-issuer', 'https://kubernetes.default.svc'],
      ...['--service-account-key-file', publicKey, '--service-account-signing-key-file', privateKey],
    ])
    const deadline = performance.now() + startMs
    const adminKubeconfig = join(directory, 'admin.kubeconfig')
    const ready = async (...args: string[]) => {
      for (;;) {
        try {
          return execFileSync(kubernetes, ['kubectl', '--kubeconfig', adminKubeconfig, ...args], { stdio: 'pipe', timeout: 10_000 })
        } catch (cause) {
          if (performance.now() > deadline) throw new Error(`The control plane did not start; its logs are in ${directory}`, { cause })
          await sleep(200)
        }
      }
    }
    const place = { server, certificate }
    await writeKubeconfig(adminKubeconfig, place, tokens.admin.token)
    await ready('get', '--raw', '/readyz')
    const plainArgs = (kubeconfig: string, own: number) =>
      ['--kubeconfig', kubeconfig, '--bind-address', '127.0.0.1', '--secure-port', String(own), '--leader-elect=false'] as const
    run('kube-controller-manager', kubernetes, [
      ...[
        'kube-controller-manager',
        ...plainArgs(await writeKubeconfig(join(directory, 'controllers.kubeconfig'), place, tokens.controllers.token), controllers),
      ],
      ...['--root-ca-file', certificate, '--service-account-private-key-file', privateKey, '--use-service-account-credentials=true'],
    ])
    run('kube-scheduler', kubernetes, [
      ...[
        'kube-scheduler',
        ...plainArgs(await writeKubeconfig(join(directory, 'scheduler.kubeconfig'), place, tokens.scheduler.token), scheduler),
      ],
    ])
    // Admission refuses pods until the account of their namespace is there.
    await ready('get', 'serviceaccount', 'default')
    await readFile(certificate)
    return { server, certificate, adminKubeconfig, nodeToken: tokens.node.token, close }
  } catch (error) {
    await close()
    throw error
  }
}
