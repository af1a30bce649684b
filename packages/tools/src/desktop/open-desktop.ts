import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { TrainError, type Workspace } from '@aworld-train/core'
import { readFrame } from './read-frame.ts'
import { toPng } from './to-png.ts'
import { passwordFile, passwordLength } from './vnc-password.ts'

/** Debian's packages of its programs. */
export const desktopPackages = ['tigervnc-standalone-server', 'openbox']

const geometry = '1280x800'
const socket = 'rfb'
const passwords = '/dev/shm/passwords'
const startMs = 30_000
/** Longest time that a call waits for its frame. */
const frameMs = 5_000

/** The screen of a lease: an X server with a window manager, for graphical programs of the same workspace. */
export interface Desktop {
  /** As `DISPLAY` names it. */
  readonly display: string
  /** Whose connections may use keyboard and mouse, and whose may only watch. The X server itself keeps the two apart. */
  readonly passwords: { readonly control: string; readonly watch: string }
  /** Connects to its VNC server, which speaks the Remote Framebuffer Protocol. */
  connect(signal: AbortSignal): Promise<Duplex>
  /** What it shows, as a PNG; `null` if it has shown the same at the last call, or shows nothing any more. */
  frame(signal: AbortSignal): Promise<Buffer | null>
}

/**
 * Starts the desktop of a workspace, which ends with it. Rejects with ENVIRONMENT_START_FAILED, for instance where its programs are not
 * installed.
 */
export async function openDesktop(workspace: Workspace, signal: AbortSignal): Promise<Desktop> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(startMs)])
  const [control, watch] = [createPassword(), createPassword()] as const
  const script = `command -v Xtigervnc openbox >/dev/null || exit 127; head -c 16 >${passwords}; exec Xtigervnc "$@"`
  const options = [
    ['-displayfd', '1', '-geometry', geometry, '-depth', '24', '-nolisten', 'tcp'],
    ['-rfbport', '-1', '-rfbunixpath', `/dev/shm/${socket}`, '-desktop', 'desktop'],
    // Whoever may connect may try as often; there is one name for all who come over a UNIX socket, so one would lock out the others.
    ['-SecurityTypes', 'VncAuth', '-PasswordFile', passwords, '-UseBlacklist=0', '-AlwaysShared'],
  ].flat()
  const server = await workspace.program({ command: ['bash', '-c', script, 'desktop', ...options], profile: 'graphical' }, signal)
  server.stdin.write(passwordFile(control, watch))
  const display = await Promise.race([
    once(server.stdout, 'data', { signal: deadline }).then(([number]) => `:${String(number).trim()}`),
    server.ended.then((exitCode) => {
      throw failure(
        exitCode === 127
          ? `its programs are not installed; as root: apt-get install ${desktopPackages.join(' ')}`
          : server.errors() || `exit code ${exitCode}`,
      )
    }),
  ]).catch((cause: unknown) => {
    signal.throwIfAborted()
    throw deadline.aborted ? failure(`its X server did not answer in ${startMs / 1_000} s`) : cause
  })
  await workspace.program({ command: ['openbox'], profile: 'graphical', env: { DISPLAY: display } }, signal)
  const connect = (signal: AbortSignal) => server.connect(socket, signal)
  let last = ''
  return {
    display,
    passwords: { control, watch },
    connect,
    async frame(signal) {
      const until = AbortSignal.any([signal, AbortSignal.timeout(frameMs)])
      const frame = await connect(until)
        .then((connection) => readFrame(connection, watch, until))
        .catch(() => null)
      signal.throwIfAborted()
      if (!frame) return null
      const digest = createHash('sha256').update(frame.rows).digest('base64')
      if (digest === last) return null
      last = digest
      return await toPng(frame)
    },
  }
}

const createPassword = () => randomBytes(6).toString('base64url').slice(0, passwordLength)

function failure(reason: string): TrainError {
  return new TrainError('ENVIRONMENT_START_FAILED', `The desktop of the lease did not start: ${reason}.`)
}
