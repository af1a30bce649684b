import { expect, test } from 'vitest'
import { createWorkspaceState } from './workspace-state.ts'

function setUp() {
  const room = { died: false }
  return { room, state: createWorkspaceState({ hasDied: () => room.died }) }
}

test('a workspace dies of the error of a callback, which is the cause of every later error', () => {
  const { state } = setUp()
  const fault = new Error('bug')
  state.check()
  state.contained(() => {
    throw fault
  })(1)
  expect([state.hasDied(), state.signal.aborted]).toEqual([true, true])
  expect(() => state.check()).toThrow(expect.objectContaining({ code: 'TOOL_SERVER_DIED', cause: fault }))
  state.close()
  expect(() => state.check()).toThrow(expect.objectContaining({ code: 'TOOL_SERVER_DIED', cause: fault }))
})

test('a workspace dies with its room', () => {
  const { room, state } = setUp()
  room.died = true
  expect(() => state.check()).toThrow(expect.objectContaining({ code: 'TOOL_SERVER_DIED' }))
  expect(state.signal.aborted).toBe(true)
})

test('a closed workspace does not die', () => {
  const { state } = setUp()
  state.close()
  expect(() => state.check()).toThrow('The workspace is closed.')
  expect(state.die().message).toBe('The workspace is closed.')
  expect(state.hasDied()).toBe(false)
})
