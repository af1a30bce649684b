import { ToolError } from '@aworld-train/core'
import { expect, test } from 'vitest'
import { pageAddress } from './page-address.ts'

test.each([
  ['https://example.com', 'https://example.com/'],
  [' HTTP://Example.com/a?b#c\n', 'http://example.com/a?b#c'],
  ['example.com/page', 'https://example.com/page'],
  ['example.com:8443', 'https://example.com:8443/'],
  ['localhost:8000/x', 'http://localhost:8000/x'],
  ['127.0.0.1:8000', 'http://127.0.0.1:8000/'],
  ['data:text/html,<h1>x', 'data:text/html,<h1>x'],
  ['about:blank', 'about:blank'],
])('%j is opened', (text, address) => {
  expect(pageAddress(text)).toBe(address)
})

test.each([
  'file:///etc/passwd',
  'FILE:/etc/passwd',
  '\tfi\nle:///etc/passwd',
  'view-source:file:///etc/passwd',
  'view-source:https://example.com',
  'blob:https://example.com/1',
  'filesystem:http://example.com/x',
  'chrome://crash',
  'about:crash',
  'javascript:alert(1)',
  'devtools://devtools',
  'ftp://example.com',
  'ws://example.com',
  '/etc/passwd',
  'https://',
  '',
])('%j is not', (text) => {
  expect(() => pageAddress(text)).toThrow(ToolError)
})
