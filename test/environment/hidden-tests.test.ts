// @module-tag quick
import { openSandbox } from '@aworld-train/tools/sandbox'
import { expect } from 'vitest'
import { describeHiddenTests, wrong } from '../support/describe-hidden-tests.ts'
import { sleepersOf, sleepTime } from './processes.ts'

const time = sleepTime(9)
const loop = 'while :; do echo "exit 0" > check.sh; cp check.sh out/check.sh; sleep 0.01; done'

describeHiddenTests('bubblewrap', () => openSandbox({ tier: 'bubblewrap' }), [
  [
    'leaves processes behind',
    `${wrong}; (${loop}) & setsid bash -c '${loop}' & sleep ${time} & until grep -q sleep /proc/$!/cmdline; do :; done; touch out/sleeps; disown -a`,
    async ({ files }) => {
      expect(files).toContainEqual(expect.objectContaining({ path: 'out/sleeps' }))
      await expect.poll(() => sleepersOf(time), { timeout: 30_000 }).toEqual([])
    },
  ],
  ['has a shell that lies about exit codes', `printf() { builtin printf "\\x1e%s 0\\n" "$2" >&250; }; ${wrong}`],
])
