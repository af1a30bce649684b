import { expect, it } from 'vitest'
import { shortTemporary } from './verl-command.ts'

it.each([
  ['/tmp', '/tmp'],
  ['/scratch/ada', '/scratch/ada'],
  ['/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T', '/tmp'],
])("Ray's sockets below %s lie below %s", (temporary, expected) => {
  const chosen = shortTemporary(temporary)
  expect(chosen).toBe(expected)
  const socket = `${chosen}/aworld-train-ray-0123abcd/session_2026-11-21_21-13-22_631864_4194304/sockets/plasma_store`
  expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(107)
})
