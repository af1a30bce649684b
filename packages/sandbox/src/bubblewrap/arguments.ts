import { existsSync, lstatSync, readlinkSync } from 'node:fs'

/** Where images of Node have the user's project, with its keys: no part of the system. */
export const projectFolder = '/usr/src'

export const nodeFolder = '/opt/node/bin'

/** The environment of every program in a jail, from its first process on: that of a parent could be read through /proc. */
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

/** Size of /dev/shm, which every jail has of its own. */
const sharedMemoryBytes = 64 * 1024 * 1024

/**
 * Namespaces of every kind, in which the command is process 1: all that it started ends with it. bubblewrap's own way to tie a jail to us,
 * --die-with-parent, is not taken: it ends bubblewrap itself, and one that is ended while it starts leaves a child that waits for it for ever,
 * or that runs on. Process 1 has to read what ends with us instead.
 */
export function ownNamespaces(userId: number): string[] {
  return ['--unshare-all', ...ownUser(userId), '--as-pid-1', '--hostname', 'workspace']
}

export function ownUser(userId: number): string[] {
  return ['--unshare-user', '--uid', String(userId), '--gid', String(userId)]
}

/** No capability, no namespace of one's own, no terminal, and a filter of system calls, which is read from a descriptor. */
export function confinement(filterFd: number): string[] {
  return ['--disable-userns', '--cap-drop', 'ALL', '--new-session', '--seccomp', String(filterFd)]
}

/** Devices that are no devices of the machine; nothing is written beside them. */
export const devices: readonly string[] = [
  '--dev',
  '/dev',
  '--size',
  String(sharedMemoryBytes),
  '--tmpfs',
  '/dev/shm',
  '--remount-ro',
  '/dev',
]

/** The programs of the machine and its libraries, and Node where the jail's user can read it. */
export function systemFolders(nodeBinary: string | undefined): string[] {
  return [
    ...['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc/alternatives', '/etc/ld.so.cache'].flatMap(mounted),
    ...(existsSync(projectFolder) ? ['--tmpfs', projectFolder] : []),
    ...(nodeBinary ? ['--ro-bind', nodeBinary, `${nodeFolder}/node`] : []),
  ]
}

/** What is at a path of the machine, read-only and links as links; nothing where there is nothing. */
export function mounted(path: string): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat) return []
  return stat.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}
