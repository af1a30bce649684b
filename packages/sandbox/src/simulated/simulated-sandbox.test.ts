import { describeSandbox } from '@aworld-train/testing'
import { expect, test } from 'vitest'
import { openSimulatedSandbox } from './simulated-sandbox.ts'

describeSandbox({
  name: 'simulated',
  create: () => openSimulatedSandbox(),
  skip: [
    {
      reason: 'the output of its commands is text: bytes that are no UTF-8 are read as Latin-1',
      tests: ['replaces bytes that are no UTF-8'],
    },
  ],
})

test('a workspace in the thread of one that was closed has nothing of it', async () => {
  const never = new AbortController().signal
  await using sandbox = { ...(await openSimulatedSandbox()), [Symbol.asyncDispose]: () => sandbox.close() }
  const play = async (command: string) => {
    const workspace = await sandbox.workspace({}, never)
    const { output } = await (await workspace.shell(never)).execute(command, 30_000, never)
    await workspace.close()
    return output
  }
  await play(
    'secret=canary; export secret; f() { echo canary; }; echo canary > canary.txt; (sleep 1; echo canary > /workspace/late.txt) & python3 -c "import builtins; builtins.canary = 1"; cd /tmp; echo canary > /tmp/canary.txt',
  )
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  const seen = await play(
    'pwd; echo [$secret]; f; ls /workspace /tmp; python3 -c "import builtins; print(hasattr(builtins, chr(99) + \'anary\'))"',
  )
  expect(seen).not.toContain('canary')
  expect(seen).toMatch(/^\/workspace\n\[\]\n[\s\S]*False\n$/)
})
