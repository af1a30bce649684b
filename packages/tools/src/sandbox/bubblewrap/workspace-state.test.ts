import { expect, test } from 'vitest'
import { createWorkspaceState } from './workspace-state.ts'

function setUp() {
  const room = { died: false, ends: 0 }
  const state = createWorkspaceState({ hasDied: () => room.died }, () => {
    room.ends++
  })
  return { room, state }
}

test('a workspace dies of the error of a callback, which is the cause of every later error', () => {
  const { room, state } = setUp()
  const fault = new Error('bug')
  state.check()
  state.contained(() => {
    throw fault
  })(1)
  expect([room.ends, state.hasDied(), state.isOver()]).toEqual([1, true, true])
  expect(() => state.check()).toThrow(expect.objectContaining({ code: 'TOOL_SERVER_DIED', cause: fault }))
})

test('a workspace dies with its room, and a closed one does not die', () => {
  const { room, state } = setUp()
  room.died = true
  expect(() => state.check()).toThrow('died')
  room.died = false
  state.close()
  expect(() => state.check()).toThrow('The workspace is closed.')
  expect(state.die().message).toBe('The workspace is closed.')
  expect([room.ends, state.hasDied()]).toEqual([0, false])
})
