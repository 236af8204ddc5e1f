import { expect, it } from 'vitest'
import { rangesOf } from './text-lines.ts'

const text = 'llm:\n  modles: []\nmcp: {}'

it.each([
  [{ line: 2, column: 3, path: 'llm.modles', message: 'unknown key' }, 'modles', 'llm.modles: unknown key'],
  [{ line: 3, column: 1, path: '', message: 'not valid' }, 'mcp', 'not valid'],
  [{ line: 99, column: 99, path: '', message: 'at the end' }, '', 'at the end'],
  [{ path: '', message: 'the whole' }, 'llm', 'the whole'],
])('the mistake %j marks %s', (mistake, marked, message) => {
  const [range] = rangesOf(text, [mistake])
  expect(text.slice(range?.from, range?.to)).toBe(marked)
  expect(range?.message).toBe(message)
})
