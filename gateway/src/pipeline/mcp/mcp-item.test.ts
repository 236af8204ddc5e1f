import { expect, it } from 'vitest'
import { loggableItemName } from './mcp-item.ts'

it.each([
  ['file:///etc/hosts', 'file:///etc/hosts'],
  ['https://host/path?token=secret', 'https://host/path'],
  ['https://host/path#secret', 'https://host/path'],
  ['postgres://ada:secret@host/table', 'postgres://host/table'],
  ['docs+https://secret@host/a@b', 'docs+https://host/a@b'],
  ['https://ada:se@cret@host', 'https://host'],
  ['search', 'search'],
])('loggableItemName returns %s without credentials', (name, expected) => {
  expect(loggableItemName(name)).toBe(expected)
})
