// What needs parts of Debian: jails of the kernel's namespaces, as root and as a plain user.
import { suite } from '../../vitest.base.ts'

export default suite('environment', { globalSetup: ['test/environment/install.ts'] })
