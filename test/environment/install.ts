import type { TestProject } from 'vitest/node'
import { installDebian } from '../support/install-debian.ts'

const programs = { bwrap: 'bubblewrap', ip: 'iproute2', '/usr/bin/python3': 'python3', setpriv: 'util-linux' }

/** ffmpeg, which takes a minute to install, is for tests of the full form. */
export default ({ config }: TestProject) =>
  installDebian(config.tagsFilter?.includes('quick') ? programs : { ...programs, ffmpeg: 'ffmpeg' })
