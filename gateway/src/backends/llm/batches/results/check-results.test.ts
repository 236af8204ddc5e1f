import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../../../test/fixtures/pipeline.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { operations } from '../../request/endpoints.ts'
import { createResultCheck } from './check-results.ts'

/** Rejects responses with `bad`, and masks `secret`. */
function guard(exchange: Exchange, reply: Reply): Reply {
  const text = Buffer.from(reply.body instanceof Uint8Array ? reply.body : []).toString()
  const answer = exchange.llm?.message?.answer
  expect(answer?.kind === 'whole' && answer.json.text).toBe(text)
  if (text.includes('bad')) {
    exchange.log.refusedBy = 'guardrail: words'
    return { status: 403, headers: {}, body: Buffer.from('not allowed') }
  }
  return text.includes('secret') ? { ...reply, body: Buffer.from(text.replace('secret', '***')) } : reply
}

async function checked(endpoint: 'chat' | 'messages', line: string | undefined): Promise<string> {
  const exchange = fixtureExchange()
  exchange.llm = {
    operation: operations.batches,
    estimate: undefined,
    message: undefined,
  }
  const results = { api: endpoint, guardrailsOfModels: () => [] }
  const { workQueue } = fixtureContext()
  const check = createResultCheck({ exchange, endpoint, results, check: guard, workQueue })
  const result = await check(line === undefined ? undefined : Buffer.from(line))
  expect(exchange.log.refusedBy).toBeUndefined()
  return result.toString()
}

const chat = (content: string, status = 200) =>
  `{"id": "b1", "custom_id": "r1", "response": {"status_code": ${status}, "body": {"choices": [{"message": {"content": "${content}"}}]}}, "error": null}`
const claude = (text: string) =>
  `{"custom_id": "r1", "result": {"type": "succeeded", "message": {"content": [{"type": "text", "text": "${text}"}]}}}`

const openAiRefusal = (message: string, ids: object = { id: 'b1', custom_id: 'r1' }) =>
  JSON.stringify({ ...ids, response: null, error: { code: 'guardrail_intervention', message } })
const unreadable = 'the gateway cannot read the response, which the guards of the model check'

describe('the check of a result', () => {
  it.each([
    chat('hello'),
    '',
    ' \r',
    chat('bad', 500),
    '{"custom_id":"r1","response":null,"error":{"code":"x"}}',
  ])('forwards %s unchanged', async (line) => {
    expect(await checked('chat', line)).toBe(line)
  })

  it('forwards changes of guards within the line', async () => {
    expect(await checked('chat', chat('a secret'))).toBe(chat('a ***'))
    expect(await checked('messages', claude('a secret'))).toBe(claude('a ***'))
  })

  it('replaces refused responses by errors of the batch', async () => {
    expect(await checked('chat', chat('bad'))).toBe(openAiRefusal('not allowed'))
    expect(JSON.parse(await checked('messages', claude('bad')))).toEqual({
      custom_id: 'r1',
      result: {
        type: 'errored',
        error: {
          type: 'error',
          error: { type: 'permission_error', message: 'not allowed' },
          request_id: null,
        },
      },
    })
  })

  it('forwards failed requests of Anthropic', async () => {
    const line = '{"custom_id":"r1","result":{"type":"errored","error":{"type":"error"}}}'
    expect(await checked('messages', line)).toBe(line)
  })

  it.each([
    ['a line beyond the limit', undefined, {}],
    ['text', 'bad', {}],
    ['a duplicate response', '{"custom_id":"r1","response":{"body":{}},"response":{"body":{}}}', {}],
    ['a response of another type', '{"custom_id":"r1","response":"bad"}', { custom_id: 'r1' }],
    ['a response without a body', '{"custom_id":"r1","response":{"status_code":200}}', { custom_id: 'r1' }],
    [
      'an ambiguous body',
      '{"custom_id":"r1","response":{"body":{"choices":[],"Choices":[]}}}',
      { custom_id: 'r1' },
    ],
  ])('refuses %s', async (_title, line, ids) => {
    expect(await checked('chat', line)).toBe(openAiRefusal(unreadable, { id: null, custom_id: null, ...ids }))
  })

  it('refuses a failed request of Anthropic with a message', async () => {
    const line = claude('bad').replace('succeeded', 'errored')
    expect(JSON.parse(await checked('messages', line))).toMatchObject({ result: { type: 'errored' } })
    expect(await checked('messages', line)).not.toContain('bad')
  })
})
