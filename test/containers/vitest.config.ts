// The image of the environment, built and run by a Docker of these tests alone, as root on Debian; and its manifests.
import { suite } from '../../vitest.base.ts'

export default suite('containers')
