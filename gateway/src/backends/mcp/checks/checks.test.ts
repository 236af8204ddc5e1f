import { describe, expect, it } from 'vitest'
import {
  type Behaviour,
  collect,
  fakeTarget,
  fixtureContext,
  request,
  settle,
} from '../../../../test/fixtures/mcp.ts'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { McpCheck } from '../../../pipeline/mcp/mcp-check.ts'
import { readTargetObject } from '../message/json-edit.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { MessageChecks } from '../targets/target.ts'
import { messageChecks, withChecks } from './checks.ts'

const checks: MessageChecks = {
  request: () => undefined,
  checksResult: (method) => method === 'tools/call',
  result: async (_request, _target, { value }) =>
    messageOf({ jsonrpc: '2.0', id: value['id'] ?? null, result: 'checked' }),
}

const answer = (id: number, more: JsonObject = {}): JsonObject => ({
  ...{ jsonrpc: '2.0', id, result: 'unchecked', ...more },
})
const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: {} }
const sampling = { jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: {} }

const disguised: [string, JsonObject][] = [
  ['another id', answer(2)],
  ['no id', { jsonrpc: '2.0', result: 'unchecked' }],
  ['no result', { jsonrpc: '2.0', id: 1, Result: 'unchecked' }],
  ['a second result in another case', answer(1, { Result: 'unchecked' })],
  ['a result with a long s', answer(1, { result: 'x', 're\u017fult': 'unchecked' })],
  ['a method and a result in another case', { ...progress, id: 1, RESULT: 'unchecked' }],
  ['a method', answer(1, { method: 'notifications/progress' })],
  ['a method that is null', answer(1, { method: null })],
  ['an error and a method', { ...progress, id: 1, error: { code: 1, message: 'unchecked' } }],
]

/** Messages that reach the client of a request whose target sends these messages before its response. */
async function messagesOf(method: string, sent: readonly JsonObject[]): Promise<JsonObject[]> {
  const behaviour: Behaviour = (_params, sink) => {
    for (const value of [...sent, answer(1)]) sink.message(messageOf(value))
    sink.end()
    return undefined
  }
  const sink = collect()
  const session = withChecks(fakeTarget('t', { behaviours: { [method]: behaviour } })).open()
  session.request(request(1, method), fixtureContext({ checks }), sink)
  await settle()
  expect(sink.ended).toBe(true)
  return sink.messages
}

describe('with checks, an answer', () => {
  it.each(disguised)('with %s is dropped from the stream of a request', async (_, value) => {
    const results = ['tools/call', 'ping'].map(async (method) =>
      (await messagesOf(method, [value])).map(({ result }) => result),
    )
    expect(await Promise.all(results)).toEqual([['checked'], ['unchecked']])
  })

  it.each([...disguised, ['the id of a request', answer(1)]])(
    'with %s is dropped from the stream of the session',
    async (_, value) => {
      const target = fakeTarget('t')
      const sink = collect()
      await withChecks(target).open().listen(fixtureContext({ checks }), sink)
      for (const sent of [progress, value, sampling])
        target.sessions[0]?.streams[0]?.sink.message(messageOf(sent))
      expect(sink.messages).toEqual([progress, sampling])
    },
  )
})

it.each(['tools/call', 'ping'])('requests and notifications of the target of %s pass', async (method) => {
  expect((await messagesOf(method, [progress, sampling])).slice(0, -1)).toEqual([progress, sampling])
})

describe('messageChecks', () => {
  const call = request(1, 'tools/call', { name: 'x' })
  const replaces = (text: string) => ({ kind: 'replace', text }) as const
  const check: McpCheck = {
    name: 'masking',
    checksResult: () => true,
    onResult: (_exchange, _request, result) => replaces(result.replaceAll('secret', '-')),
    onError: (_exchange, _request, error) => replaces(error.replaceAll('secret', '-')),
  }
  const checked = (text: string, checksOfErrors: boolean) => {
    const { onError: _, ...withoutErrors } = check
    const bound = messageChecks(fixtureExchange(), [checksOfErrors ? check : withoutErrors])
    return bound?.result(call, 't', { text, value: JSON.parse(text) })
  }

  it.each([
    '{"jsonrpc":"2.0", "id":1,"error":{"code":1.0,"message":"secret"}}',
    '{"jsonrpc":"2.0", "id":1,"result":{"x":"secret"},"error":{"message":"secret"}}',
  ])('checks all members of %s', async (text) => {
    expect((await checked(text, true))?.text).toBe(text.replaceAll('secret', '-'))
  })

  it('leaves errors unchanged for checks without them', async () => {
    const text = '{"id":1,"error":{"message":"secret"}}'
    expect((await checked(text, false))?.text).toBe(text)
  })
})

describe('with checks, an HTTP error of the target', () => {
  const masking: MessageChecks = {
    ...checks,
    result: async (_request, _target, { text }) => readTargetObject(text.replaceAll('secret', '-')),
  }
  const refuses = (body: string | undefined): Behaviour => {
    const headers = { 'content-type': 'text/plain', 'www-authenticate': 'Bearer' }
    const reply = { status: 401, headers, body: body === undefined ? undefined : Buffer.from(body) }
    return () => ({ kind: 'reply', reply })
  }
  async function failureOf(behaviour: Behaviour) {
    const sink = collect()
    const session = withChecks(fakeTarget('t', { behaviours: { 'tools/call': behaviour } })).open()
    session.request(request(7, 'tools/call'), fixtureContext({ checks: masking }), sink)
    await settle()
    return sink.failure
  }

  it.each([
    ['a secret', '"data":{"status":401,"body":"a -"}'],
    [undefined, '"data":{"status":401}'],
    [
      '{"jsonrpc":"2.0","id":7,"error":{"code":1.0,"message":"secret"}}',
      '"error":{"code":1.0,"message":"-"}',
    ],
    [
      '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"a"},"Error":"secret"}',
      '"error":{"code":1,"message":"a"}}',
    ],
  ])('with the body %s is checked as a JSON-RPC error', async (body, expected) => {
    const failure = await failureOf(refuses(body))
    expect(failure).toMatchObject({
      kind: 'reply',
      reply: {
        status: 401,
        headers: { 'content-type': 'application/json', 'www-authenticate': 'Bearer' },
      },
    })
    const text = failure?.kind === 'reply' ? String(failure.reply.body) : ''
    expect(text).toContain(expected)
    expect(text).not.toContain('secret')
  })

  it('to a notification or a stream has no body', async () => {
    const target = fakeTarget('t')
    const reply = { status: 400, headers: { 'content-type': 'text/plain' }, body: Buffer.from('secret') }
    target.refusals['notifications/initialized'] = { kind: 'reply', reply }
    target.listenFailure = { kind: 'reply', reply }
    const session = withChecks(target).open()
    const context = fixtureContext({ checks })
    const bare = { kind: 'reply', reply: { status: 400, headers: {}, body: undefined } }
    const notification = messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' })
    expect(await session.deliver(notification, context)).toEqual(bare)
    expect(await session.listen(context, collect())).toEqual({ kind: 'failed', failure: bare })
  })

  it('fails if the check fails', async () => {
    const failing: MessageChecks = { ...checks, result: () => Promise.reject(new Error('broken')) }
    const sink = collect()
    const session = withChecks(fakeTarget('t', { behaviours: { 'tools/call': refuses('secret') } })).open()
    session.request(request(7, 'tools/call'), fixtureContext({ checks: failing }), sink)
    await settle()
    expect(sink.failure).toMatchObject({ kind: 'error' })
  })
})

describe('results in notifications of tasks', () => {
  const task = (more: JsonObject): JsonObject => ({
    ...{ jsonrpc: '2.0', method: 'notifications/tasks', params: { taskId: 't', ...more } },
  })
  const sent = [task({ status: 'working' }), task({ result: {} }), task({ error: { code: 1, message: 'x' } })]

  it.each([true, false])('are dropped if results of tasks are checked: %s', async (isChecked) => {
    const ofTasks: MessageChecks = {
      ...checks,
      checksResult: (method) => isChecked && method === 'tasks/get',
    }
    const target = fakeTarget('t', { behaviours: { 'subscriptions/listen': () => undefined } })
    const session = withChecks(target).open()
    const context = fixtureContext({ checks: ofTasks })
    const sinks = [collect(), collect()] as const
    session.request(request(1, 'subscriptions/listen'), context, sinks[0])
    await session.listen(context, sinks[1])
    const [opened] = target.sessions
    for (const sink of [opened?.sinks[0], opened?.streams[0]?.sink])
      for (const value of sent) sink?.message(messageOf(value))
    for (const { messages } of sinks) expect(messages).toEqual(isChecked ? sent.slice(0, 1) : sent)
  })
})

describe('headers that mirror arguments', () => {
  it('have the values of a guard, or are removed', async () => {
    const replacing: MessageChecks = {
      ...checks,
      request: ({ value }) => ({
        ...{ kind: 'forward', headers: [] },
        message: messageOf({
          ...value,
          params: { name: 'x', arguments: { a: '-', b: 'kept', c: { d: 'grün' }, one: 'x', two: '-' } },
        }),
      }),
    }
    const target = fakeTarget('t')
    const params = {
      name: 'x',
      arguments: { a: 'secret', b: 'kept', c: { d: 7, e: true }, one: 'x', two: 'x' },
    }
    const headers = {
      ...{ 'mcp-param-a': 'secret', 'mcp-param-b': 'kept', 'mcp-param-d': '7', 'mcp-param-e': 'true' },
      ...{ 'mcp-param-two': 'x', 'mcp-param-other': 'other', 'mcp-name': 'x' },
    }
    const context = fixtureContext({ checks: replacing, headers })
    withChecks(target)
      .open()
      .request(request(1, 'tools/call', params), context, collect())
    await settle()
    expect(target.sessions[0]?.contexts[0]?.headers).toEqual({
      ...{ 'mcp-param-a': '-', 'mcp-param-b': 'kept', 'mcp-param-d': '=?base64?Z3LDvG4=?=' },
      ...{ 'mcp-param-other': 'other', 'mcp-name': 'x' },
    })
  })
})
