import { existsSync, lstatSync, readlinkSync } from 'node:fs'
import type { ProgramProfile } from '@aworld-train/core'

/** Folder in which images of Node have the user's project, with its keys. It is no part of the system. */
export const projectFolder = '/usr/src'

export const nodeFolder = '/opt/node/bin'

/** The environment of every program in a jail, from its first process on, because a parent's environment could be read through /proc. */
export const jailEnvironment = {
  PATH: `${nodeFolder}:/usr/local/bin:/usr/bin:/bin`,
  HOME: '/workspace',
  USER: 'agent',
  LANG: 'C.UTF-8',
  TERM: 'dumb',
}

/** Files of a system that programs expect. */
export const systemFiles = (home: string) => ({
  '/etc/passwd': `root:x:0:0:root:/:/bin/sh\nagent:x:1000:1000:agent:${home}:/bin/bash\n`,
  '/etc/group': 'root:x:0:\nagent:x:1000:\n',
  '/etc/hosts': '127.0.0.1 localhost\n::1 localhost\n',
})

/** Size of /dev/shm. */
export const sharedMemoryBytes = 64 * 1024 * 1024

/**
 * Namespaces of every kind, in which the command is process 1, so that all that it started ends with it. bubblewrap's own option to tie a
 * jail to its parent, --die-with-parent, is not used: it ends bubblewrap itself, and a bubblewrap that is ended while it starts leaves a
 * child that waits for it for ever or runs on. Instead, process 1 has to read a descriptor that closes with this process.
 */
export function ownNamespaces(userId: number): string[] {
  return ['--unshare-all', ...ownUser(userId), '--as-pid-1', '--hostname', 'workspace']
}

export function ownUser(userId: number): string[] {
  return ['--unshare-user', '--uid', String(userId), '--gid', String(userId)]
}

/**
 * No capability, no terminal, and a filter of system calls that is read from a descriptor. Further namespaces are refused unless the profile
 * allows a sandbox of the program's own.
 */
export function confinement(filterFd: number, profile: ProgramProfile = 'command'): string[] {
  return [profile === 'command' ? ['--disable-userns'] : [], '--cap-drop', 'ALL', '--new-session', '--seccomp', String(filterFd)].flat()
}

/** Devices that are none of the machine's, with these mounts. Nothing else can be written beside them. */
const devicesWith = (...mounts: readonly string[]) => ['--dev', '/dev', ...mounts, '--remount-ro', '/dev']

/** Devices of a jail that stands alone. */
export const devices = devicesWith('--size', String(sharedMemoryBytes), '--tmpfs', '/dev/shm')

/** Devices of a command's jail in a room. All of them share the room's /dev/shm, so that many cannot hold more than one. */
export const roomDevices = devicesWith('--bind', '/dev/shm', '/dev/shm')

/** Home and temporary files of a graphical program. */
export const privateFolder = '/dev/shm'
/** Size of that folder, which holds the profile of a browser and what it downloads. */
const privateBytes = 256 * 1024 * 1024

/**
 * Devices of a graphical program's jail in a room, with a folder of its own. No command of the workspace reads there, where a password may
 * be, or lays anything that the program would load.
 */
export const graphicalDevices = devicesWith('--size', String(privateBytes), '--tmpfs', privateFolder)

/** The machine's programs and libraries, and Node if the jail's user can read it. */
export function systemFolders(nodeBinary: string | undefined): string[] {
  return [
    ...['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc/alternatives', '/etc/ld.so.cache', '/etc/libreoffice'].flatMap(mounted),
    ...(existsSync(projectFolder) ? ['--tmpfs', projectFolder] : []),
    ...(nodeBinary ? ['--ro-bind', nodeBinary, `${nodeFolder}/node`] : []),
  ]
}

/** Mounts a path of the machine read-only, a link as a link; nothing if the path does not exist. */
export function mounted(path: string): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat) return []
  return stat.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}
