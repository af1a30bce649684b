// Engines that start workers, each on a cluster that the test starts as processes of this machine.
import { suite } from '../../vitest.base.ts'

export default suite('executors', { globalSetup: ['test/executors/install.ts'] })
