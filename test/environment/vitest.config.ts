// What needs parts of Debian: jails of the kernel's namespaces, as root and as a plain user.
import { suite } from '../../vitest.base.ts'

export default suite('environment', {
  globalSetup: ['test/environment/install.ts'],
  // A project adds to what stands here.
  include: [],
  projects: [
    { extends: true, test: { name: 'environment', include: ['test/environment/**/*.test.ts'] } },
    {
      extends: true,
      // What tool servers do in the simulation, they do in the jail.
      test: {
        name: 'servers',
        include: ['packages/tools/src/servers/**/*.test.ts', 'examples/desk-research/*.test.ts'],
        provide: { tier: 'bubblewrap' },
      },
    },
  ],
})
