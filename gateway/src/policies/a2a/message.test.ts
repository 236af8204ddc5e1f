import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { compileA2a } from './a2a.ts'
import { readCall } from './message.ts'

const read = (value: unknown) =>
  readCall(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)))

describe('calls of agents', () => {
  it.each([
    '{"method":"message/send","Method":"tasks/cancel"}',
    '{"METHOD":"tasks/cancel"}',
    '{"method":"tasks/get","params":{"id":"a","Id":"b"}}',
    '{"method":"tasks/get","Params":{"id":"b"}}',
    '{"method":"message/send","params":{"message":{"taskId":"a","taskID":"b"}}}',
    '{"method":"message/send","params":{"message":{"conte\\u017fx":1,"CONTEXTID":"b"}}}',
  ])('are invalid with keys in another case: %s', (body) => {
    expect(read(body)).toMatchObject({ kind: 'invalid' })
  })

  it('may have any keys in metadata and in data of parts', () => {
    const free = { ID: 1, id: 2, Method: 'x' }
    const message = { taskId: 't', parts: [{ kind: 'data', data: free }], metadata: free }
    const params = { message, metadata: free, configuration: { blocking: true } }
    expect(read({ jsonrpc: '2.0', id: 1, method: 'message/send', params })).toEqual({
      kind: 'call',
      facts: { method: 'message/send', taskId: 't' },
    })
  })
})

describe('bodies of another content type', () => {
  const statusOf = async (body: string, type = 'text/plain') => {
    const exchange = fixtureExchange({ headers: { 'content-type': type } }, { body: Buffer.from(body) })
    return (await compileA2a(fixtureContext(), 'route').onRequest?.(exchange))?.status
  }

  it.each(['{"method":"tasks/cancel"}', ' \n\t[{}]', '\ufeff{}'])(
    'are refused if they are JSON: %j',
    async (body) => {
      expect(await statusOf(body)).toBe(415)
    },
  )

  it('are forwarded otherwise', async () => {
    expect([await statusOf('text {'), await statusOf('')]).toEqual([undefined, undefined])
  })
})
