import { expect, it } from 'vitest'
import type { JsonObject } from '../../lib/json/json.ts'
import { findKind } from '../kinds.ts'
import { secretPaths } from '../secrets/secret-paths.ts'
import type { HistoryRecord } from '../stores/store.ts'
import { createValueCodec } from '../stores/value-codec.ts'
import { viewHistory } from './history-view.ts'
import { revertOf } from './revert.ts'

const id = '11111111-1111-4111-8111-111111111111'
const kindName = 'llm.provider'
const kind = findKind(kindName)
const provider = (apiKey: string, more: object = {}) => ({
  name: 'p',
  provider: 'openai',
  params: { apiKey },
  ...more,
})

/** A change as a store without an encryption key returns it. */
function changed(before: JsonObject | undefined, after: JsonObject | undefined): HistoryRecord {
  const codec = createValueCodec({ current: undefined, previous: [] }, secretPaths)
  const [one, other] = codec
    .encodeVersions(kindName, id, [before, after])
    .map((text) => (text === undefined ? undefined : codec.decodeVersion(kindName, id, text)))
  const op = before === undefined ? 'create' : after === undefined ? 'delete' : 'update'
  const origin = { origin: 'write', address: '::1', requestId: 'r' } as const
  return {
    ...origin,
    id: 7,
    at: '',
    op,
    kind: kindName,
    resourceId: id,
    revision: 2,
    before: one,
    after: other,
  }
}

const current = (value: JsonObject | undefined) => ({
  find: () =>
    value === undefined
      ? { kind: 'refused' as const, status: 404, message: 'gone' }
      : { kind: 'found' as const, envelope: { kind: kindName, id, value } },
})

it('restores a removed secret from the current record', () => {
  const record = changed(provider('sk-1'), provider('sk-1', { defaults: { a: 1 } }))
  const revert = revertOf(record, current(provider('sk-1', { defaults: { a: 2 } })))
  const draft = { kind: 'draft', name: 'p', value: provider('sk-1') }
  expect(revert).toEqual({ kind: 'revert', change: { op: 'revert', of: 7, kind, id, draft } })
})

it.each([
  ['another secret now', provider('sk-3')],
  ['no record now', undefined],
])('is refused with %s, without a mask or fingerprint in a value', (_, now) => {
  const revert = revertOf(changed(provider('sk-1'), provider('sk-2')), current(now))
  expect(revert).toMatchObject({
    kind: 'refused',
    status: 409,
    message: expect.stringContaining('the history does not contain the secret params.apiKey'),
  })
})

it('is refused if the value before the change is unreadable', () => {
  const record = { ...changed(provider('a'), provider('b')), before: undefined }
  expect(revertOf(record, current(undefined))).toMatchObject({ kind: 'refused', status: 409 })
  const lost = { ...record, before: { kind: 'unreadable' as const, reason: 'another key' } }
  expect(revertOf(lost, current(undefined))).toMatchObject({
    message: 'the value before this change cannot be read: another key',
  })
})

it('shows removed secrets as masks, and reports only those that changed', () => {
  const view = viewHistory(changed(provider('sk-1'), provider('sk-1', { defaults: { a: 1 } })))
  expect(view).toMatchObject({
    before: provider('***'),
    differences: [{ path: '/defaults', after: { a: 1 } }],
  })
  expect(view.fields).toEqual(['defaults'])
  const other = viewHistory(changed(provider('sk-1'), provider('sk-2')))
  expect(other.differences).toEqual([{ path: '/params/apiKey', before: '***', after: '***' }])
  expect(JSON.stringify([view, other])).not.toContain('enc:')
})
