import fc from 'fast-check'
import { expect, it } from 'vitest'
import { applyHeaderEdits, isEditableHeader, isHeaderValue } from '../../net/http/header-edits.ts'
import { editsOf } from './mutations.ts'
import type { HeaderAction } from './wire/messages.ts'

const set = (name: string, value: string, action: HeaderAction = 'overwrite') => ({ name, value, action })

it('removals precede additions, which see them', () => {
  const headers = { a: '1', b: '1' }
  const found = editsOf(
    {
      remove: ['A'],
      set: [set('a', '2', 'addIfAbsent'), set('a', '3', 'append'), set('c', '4', 'overwriteIfExists')],
    },
    headers,
  )
  if (found.kind !== 'edits') throw new Error(found.reason)
  applyHeaderEdits(headers, found.edits)
  expect(headers).toEqual({ a: '2,3', b: '1' })
})

it('ignores fields of the connection and of the length, and separates pseudo-headers', () => {
  const mutation = {
    remove: ['host', 'Transfer-Encoding'],
    set: [set('Content-Length', '1'), set(':path', '/x'), set('empty', '')],
  }
  expect(editsOf(mutation, {})).toEqual({ kind: 'edits', edits: [], pseudo: [[':path', '/x']], ignored: 3 })
})

it('permits no edit that cannot be sent, for any mutation', () => {
  const option = fc.record({
    name: fc.oneof(fc.string(), fc.constantFrom('a', 'content-length', '__proto__', 'host')),
    value: fc.string({ unit: 'binary' }),
    action: fc.constantFrom<HeaderAction>('append', 'addIfAbsent', 'overwrite', 'overwriteIfExists'),
  })
  fc.assert(
    fc.property(fc.array(option), fc.array(fc.string()), (options, remove) => {
      const found = editsOf({ set: options, remove }, { a: '1' })
      if (found.kind === 'invalid') return
      for (const edit of found.edits) {
        expect(isEditableHeader(edit.name)).toBe(true)
        if (edit.kind !== 'remove') expect(isHeaderValue(String(edit.value))).toBe(true)
      }
    }),
  )
})
