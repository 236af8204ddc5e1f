import { expect, it } from 'vitest'
import { CheckFailure } from '../../guard.ts'
import { createResponseReader } from './response.ts'

const allow = Buffer.from('{"action":{"reason":"fine"}}')
const reject = Buffer.from('{"action":{"body":"no","status_code":403}}')

it('reads every answer anew that differs from the one before, were it by a byte', () => {
  const read = createResponseReader('request')
  expect(read(allow)).toEqual({ kind: 'allow', reason: 'fine' })
  expect(read(allow)).toEqual({ kind: 'allow', reason: 'fine' })
  expect(read(reject)).toMatchObject({ kind: 'reject', rejection: { status: 403, body: 'no' } })
  expect(read(reject)).toMatchObject({ kind: 'reject' })
  expect(() => read(Buffer.from('{"action":{"denied":"fine"}}'))).toThrow(CheckFailure)
  expect(read(Buffer.from('{"action":{"reason":"dine"}}'))).toEqual({ kind: 'allow', reason: 'dine' })
})

it('does not alias the buffer of the received bytes', () => {
  const read = createResponseReader('request')
  const bytes = Buffer.from(allow)
  read(bytes)
  reject.copy(bytes, 0, 0, bytes.byteLength)
  expect(() => read(bytes)).toThrow(CheckFailure)
  expect(read(allow)).toEqual({ kind: 'allow', reason: 'fine' })
})

it('parses a response above the cache limit each time', () => {
  const read = createResponseReader('response')
  const large = (reason: string) => Buffer.from(JSON.stringify({ action: { reason: reason.repeat(2_000) } }))
  expect(read(large('a'))).toMatchObject({ kind: 'allow' })
  expect(read(large('b'))).toEqual({ kind: 'allow', reason: 'b'.repeat(2_000) })
})

it.each([
  { reason: 'ok', score: 0.1 },
  { reason: 'ok', score: 0.1, model: 'classifier-2', latencyMs: 12, id: 'x' },
  { reason: '', trace: { spans: [1] }, labels: [] },
])('ignores members of an allow that decide nothing: %j', (action) => {
  const read = createResponseReader('request')
  expect(read(Buffer.from(JSON.stringify({ action })))).toMatchObject({ kind: 'allow' })
})

it.each([
  'blocked',
  'type',
  'Status',
  'statusCode',
  'allow',
  'is_safe',
  'Bo\u0064y',
  'decision',
  'messages',
  'flagged',
])('takes no allow with a member %s for one', (name) => {
  const read = createResponseReader('request')
  expect(() => read(Buffer.from(JSON.stringify({ action: { reason: 'x', [name]: false } })))).toThrow(
    CheckFailure,
  )
})
