import { randomBytes } from 'node:crypto'
import { type Outward, ToolError, type Workspace } from '@aworld-train/core'
import type { Authority } from './authority.ts'
import { EgressProxy, type ProxyCounts, type ProxyCredentials } from './proxy.ts'

/** The way of a workspace's programs to the web. */
export interface Egress {
  /** The proxy's port on 127.0.0.1 as the programs see it. */
  readonly port: number
  /** What the proxy asks its clients for. A client that knows it may pass even if the others may not. */
  readonly credentials: ProxyCredentials
  /** Value of Chromium's `--ignore-certificate-errors-spki-list`. */
  readonly spki: string
}

export interface EgressOptions {
  readonly workspace: Workspace
  readonly outward: Outward
  readonly authority: Authority
  /** What its programs know of it. */
  readonly egress: Egress
  readonly counts: ProxyCounts
  /** Whether every program of the workspace may pass, or only those with the credentials. */
  readonly isOpen: boolean
}

const egressPort = 3128
/** Where programs find the certificate of the authority. */
const certificatePath = '/tmp/egress-ca.pem'
const writeMs = 60_000

/** Variables by which programs find the proxy and trust it. */
export const egressVariables: Readonly<Record<string, string>> = {
  ...Object.fromEntries(['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'].map((name) => [name, `http://127.0.0.1:${egressPort}`])),
  ...Object.fromEntries(['no_proxy', 'NO_PROXY'].map((name) => [name, 'localhost,127.0.0.1,::1'])),
  ...Object.fromEntries(
    ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO'].map((name) => [
      name,
      certificatePath,
    ]),
  ),
  // Without it Node does not look at the variables above.
  NODE_USE_ENV_PROXY: '1',
}

/** What the programs of a workspace have to know of their way to the web. It is opened later. */
export function planEgress({ spki }: Authority): Egress {
  return { port: egressPort, credentials: { username: 'browser', password: randomBytes(24).toString('hex') }, spki }
}

/** Opens a proxy on the loopback of a workspace, until the signal aborts or the workspace closes. Rejects as `Workspace.listen` does. */
export async function openEgress(options: EgressOptions, signal: AbortSignal): Promise<void> {
  const { workspace, outward, authority, egress, counts, isOpen } = options
  const proxy = new EgressProxy({ authority, relay: outward.relay(), credentials: isOpen ? null : egress.credentials, counts })
  await workspace.listen(egress.port, (connection) => proxy.serve(connection), signal)
  if (!isOpen) return
  const command = ['bash', '-c', `cat > ${certificatePath}`] as const
  const { exitCode, output } = await workspace.run({ command, stdin: authority.certificate, timeoutMs: writeMs }, signal)
  if (exitCode !== 0) throw new ToolError(`The certificate of the proxy could not be written: ${output.trim()}.`)
}
