import { expect, test } from 'vitest'
import { htmlToMarkdown, toTable } from './markdown.ts'

test('headings, paragraphs, emphasis, links and nested lists become Markdown', () => {
  const html =
    '<h1>Budget &amp; plan</h1><p>The <strong>secret</strong> is <em>4711</em>.<br />See <a href="https://example.com/?a=1&amp;b=2">this</a><a id="x"></a>.</p>' +
    '<ol><li>one<ul><li>inner</li></ul></li><li>two</li></ol><p>End</p>'
  expect(htmlToMarkdown(html)).toBe(
    '# Budget & plan\n\nThe **secret** is *4711*.\nSee [this](https://example.com/?a=1&b=2).\n\n1. one\n  - inner\n2. two\n\nEnd',
  )
})

test('a table keeps its cells apart, with spans, bars and paragraphs inside', () => {
  const html = '<table><tr><td colspan="2"><p>City</p></td></tr><tr><td><p>Ulm</p><p>a|b</p></td><td>126000</td></tr></table>'
  expect(htmlToMarkdown(html)).toBe('| City |  |\n| --- | --- |\n| Ulm a\\|b | 126000 |')
})

test('a table in a cell is one line of that cell', () => {
  const inner = '<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>'
  expect(htmlToMarkdown(`<table><tr><td>x</td><td>${inner}</td></tr></table>`)).toBe('| x | a, b; c, d |\n| --- | --- |')
})

test('rows of different length make a table as wide as the longest', () => {
  expect(toTable([['a'], ['b', 'c']])).toBe('| a |  |\n| --- | --- |\n| b | c |')
  expect(toTable([])).toBe('')
})

test('tags that never end, never began or are not HTML leave the text', () => {
  expect(htmlToMarkdown('<p>a < b</p></td></table><h2>open <td>cell <constructor>x</p>')).toContain('a < b')
  expect(htmlToMarkdown(`${'<li>'.repeat(2_000)}deep`)).toContain('deep')
})
