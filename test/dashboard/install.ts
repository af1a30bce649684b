import { installDebian } from '../support/install-debian.ts'

export default () => installDebian({ chromium: 'chromium' })
