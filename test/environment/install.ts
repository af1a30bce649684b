import type { TestProject } from 'vitest/node'
import { installDebian } from '../support/install-debian.ts'

const programs = {
  '/usr/lib/chromium/chromium-headless-shell': 'chromium-headless-shell',
  curl: 'curl',
  bwrap: 'bubblewrap',
  ip: 'iproute2',
  '/usr/bin/python3': 'python3',
  setpriv: 'util-linux',
}

/** What takes a minute to install is for tests of the full form. */
const large = {
  ffmpeg: 'ffmpeg',
  soffice: 'libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui',
  Xtigervnc: 'tigervnc-standalone-server',
  openbox: 'openbox',
  '/usr/lib/chromium/chromium': 'chromium',
}

export default ({ config }: TestProject) => installDebian(config.tagsFilter?.includes('quick') ? programs : { ...programs, ...large })
