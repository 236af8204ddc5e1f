import { connect as connectTcp } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { opcodes } from '../../src/net/websocket/frame.ts'
import { createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { metricValue } from '../support/metrics.ts'
import { openAiKey } from '../support/mock-openai.ts'
import { type MockRealtime, mockRealtime } from '../support/mock-realtime.ts'
import { member } from '../support/mock-server.ts'
import { rawConnect } from '../support/raw-http.ts'
import { until, within } from '../support/wait.ts'

const keys = {
  alice: 'tg-canary-alice-rt01',
  bob: 'tg-canary-bob-rt02',
  limited: 'tg-canary-limited-rt03',
  budgeted: 'tg-canary-budgeted-rt04',
  revoked: 'tg-canary-revoked-rt05',
}

let provider: MockRealtime
let gateway: Gateway

function keyRecord(id: keyof typeof keys, more: object = {}): object {
  return { key: keys[id], metadata: { id, name: id, group: 'voice' }, ...more }
}

const records = [
  keyRecord('alice'),
  keyRecord('bob', { allowedModels: ['gpt-realtime'] }),
  keyRecord('limited', { limits: [{ tokens: 40, unit: 'Hours' }] }),
  keyRecord('budgeted', {
    budgets: [{ name: 'daily', limit: { unit: 'Tokens', amount: 1000 }, window: { rolling: '366d' } }],
  }),
]

function configOf(apiKeys: readonly object[]): GatewayConfig {
  const model = (name: string, more: object = {}) => ({
    name,
    provider: 'openai',
    params: { baseUrl: `${provider.url}/v1`, apiKey: openAiKey, ...more },
  })
  return {
    config: {
      modelCatalog: [
        {
          inline: {
            providers: {
              openai: {
                models: {
                  'gpt-realtime': {
                    rates: { input: '1', output: '2', cacheRead: '0.5', inputAudio: '10', outputAudio: '20' },
                  },
                },
              },
            },
          },
        },
      ],
    },
    llm: {
      models: [
        model('gpt-realtime'),
        model('voice', { model: 'gpt-realtime' }),
        { name: 'claude', provider: 'anthropic', params: { apiKey: 'x' } },
        {
          name: 'azure-voice',
          provider: 'azure',
          params: {
            azureResourceName: 'r',
            azureResourceType: 'openAI',
            azureApiVersion: '2025-04-01-preview',
            baseUrl: provider.url,
            apiKey: openAiKey,
            model: 'my-deployment',
          },
        },
      ],
      policies: { apiKey: { mode: 'strict', keys: apiKeys } },
    },
  }
}

beforeAll(async () => {
  provider = await mockRealtime('file')
  gateway = await startGateway(configOf([...records, keyRecord('revoked')]), { lifetime: 'file' })
})

beforeEach(() => {
  provider.connections.length = 0
  provider.refuseWith = undefined
})

type Client = {
  socket: WebSocket
  events: Record<string, unknown>[]
  closed: Promise<{ code: number; reason: string }>
  send(event: object): void
  /** The first event of a type, behind the first `after` events. */
  receives(type: string, after?: number): Promise<Record<string, unknown>>
}

function connect(
  key: string,
  query = '?model=gpt-realtime',
  options: { protocols?: string[]; port?: number } = {},
): Client {
  const headers = options.protocols === undefined ? { authorization: `Bearer ${key}` } : {}
  const socket = new WebSocket(
    `ws://127.0.0.1:${options.port ?? gateway.port}/v1/realtime${query}`,
    options.protocols ?? [],
    {
      headers,
    },
  )
  endAfter('test', () => socket.terminate())
  const events: Record<string, unknown>[] = []
  socket.on('message', (data) => events.push(JSON.parse(String(data))))
  socket.on('error', () => {})
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
  })
  return {
    socket,
    events,
    closed,
    send: (event) => socket.send(JSON.stringify(event)),
    receives: (type, after = 0) =>
      until(`event ${type}`, () => events.slice(after).find((event) => event['type'] === type)),
  }
}

async function opened(
  key: string,
  query?: string,
  options?: { protocols?: string[]; port?: number },
): Promise<Client> {
  const client = connect(key, query, options)
  await client.receives('session.created')
  return client
}

function say(client: Client, text: string): void {
  client.send({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
  })
  client.send({ type: 'response.create' })
}

/** The status of a refused upgrade, and its error. */
async function refusal(key: string, query?: string): Promise<{ status: number | undefined; error: unknown }> {
  const { socket } = connect(key, query)
  const answer = Promise.withResolvers<{ status: number | undefined; error: unknown }>()
  socket.on('unexpected-response', (_, response) => {
    let text = ''
    response.on('data', (chunk) => {
      text += chunk
    })
    response.on('end', () => {
      socket.terminate()
      answer.resolve({
        status: response.statusCode,
        error: text.startsWith('{') ? JSON.parse(text).error : text,
      })
    })
  })
  return within('refusal', answer.promise)
}

/** A front with TLS, because the SDK connects to wss addresses only. */
async function tlsFront(port: number): Promise<number> {
  const server = createTlsServer(createAuthority().issue('localhost', '127.0.0.1'), (socket) => {
    const inner = connectTcp(port, '127.0.0.1')
    socket.on('error', () => inner.destroy())
    inner.on('error', () => socket.destroy())
    socket.pipe(inner).pipe(socket)
  })
  endAfter('test', () => {
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return address !== null && typeof address === 'object' ? address.port : 0
}

describe('the openai package', () => {
  async function converse(port: number, apiKey: string): Promise<unknown[]> {
    const client = new OpenAI({ apiKey, baseURL: `https://127.0.0.1:${port}/v1` })
    const connection = new OpenAIRealtimeWS(
      { model: 'gpt-realtime', options: { rejectUnauthorized: false } },
      client,
    )
    const events: unknown[] = []
    const done = Promise.withResolvers<void>()
    connection.on('error', (error) => done.reject(error))
    connection.on('event', (event) => events.push(event))
    connection.on('session.created', () => {
      connection.send({
        type: 'session.update',
        session: { type: 'realtime', instructions: 'Be brief.', output_modalities: ['text'] },
      })
      connection.send({
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Good morning' }] },
      })
      connection.send({ type: 'response.create' })
    })
    connection.on('response.done', () => done.resolve())
    await within('response', done.promise)
    const closed = new Promise((resolve) => connection.socket.on('close', (code) => resolve(code)))
    connection.close({ code: 1000, reason: 'done' })
    events.push(await within('close', closed))
    return events
  }

  it('has equal events directly and through the gateway, which bills equal tokens', async () => {
    const direct = await converse(await tlsFront(Number(new URL(provider.url).port)), openAiKey)
    const lines = gateway.requests().length
    const through = await converse(await tlsFront(gateway.port), keys.alice)
    expect(through).toEqual(direct)
    const [directly, relayed] = provider.connections
    const withoutIds = (events: Record<string, unknown>[] = []) =>
      events.map(({ event_id: _, ...rest }) => rest)
    expect(withoutIds(relayed?.events)).toEqual(withoutIds(directly?.events))
    await until('close at the provider', () => relayed?.closed)
    expect(relayed?.closed).toEqual({ code: 1000, reason: 'done' })
    expect(relayed?.headers.authorization).toBe(`Bearer ${openAiKey}`)
    const [response, connection] = await gateway.logged(lines + 2).then((all) => all.slice(lines))
    expect(response).toMatchObject({ status: 200, model: 'gpt-realtime' })
    expect(connection).toMatchObject({ status: 101 })
    const labels = { gen_ai_request_model: 'gpt-realtime' }
    const metrics = await until('end of the session', async () => {
      const text = await gateway.metrics()
      const open = metricValue(text, 'tollgate_admission_in_use', { resource: 'realtime_sessions' })
      return open === 0 ? text : undefined
    })
    expect(metricValue(metrics, 'gen_ai_client_token_usage_sum', labels)).toBe(30 + 6)
  })
})

describe('the connection', () => {
  it('accepts the key of browsers in a subprotocol, which no one else receives', async () => {
    const client = await opened('', undefined, {
      protocols: ['realtime', `openai-insecure-api-key.${keys.alice}`],
    })
    expect(client.socket.protocol).toBe('realtime')
    expect(provider.connections[0]?.headers['sec-websocket-protocol']).toBe('realtime')
    expect(JSON.stringify(provider.connections[0]?.headers)).not.toContain(keys.alice)
    client.socket.close()
    await client.closed
    expect(gateway.stdout()).not.toContain(keys.alice)
  })

  it('sends the configured model, and permits no other in events', async () => {
    const client = await opened(keys.alice, '?model=voice')
    expect(provider.connections[0]?.path).toBe('/v1/realtime?model=gpt-realtime')
    client.send({ type: 'session.update', session: { type: 'realtime', model: 'voice' } })
    await client.receives('session.updated')
    expect(provider.connections[0]?.events[0]).toEqual({
      type: 'session.update',
      session: { type: 'realtime', model: 'gpt-realtime' },
    })
    client.send({ type: 'session.update', event_id: 'mine', session: { type: 'realtime', model: 'other' } })
    expect(await client.receives('error')).toMatchObject({
      error: { code: 'model_not_allowed', event_id: 'mine', param: 'session.model' },
    })
    expect(provider.connections[0]?.events).toHaveLength(1)
  })

  it('refuses models of transcriptions that the key does not permit', async () => {
    const client = await opened(keys.bob)
    const transcription = { model: 'gpt-4o-transcribe' }
    client.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
    expect(await client.receives('error')).toMatchObject({ error: { code: 'model_not_allowed' } })
  })

  it('names the deployment of a dated version of Azure', async () => {
    await opened(keys.alice, '?deployment=azure-voice&api-version=2024-10-01-preview')
    expect(provider.connections[0]?.path).toBe(
      '/openai/realtime?api-version=2025-04-01-preview&deployment=my-deployment',
    )
    expect(provider.connections[0]?.headers['api-key']).toBe(openAiKey)
  })

  it.each<[string, string, string | undefined, number, string | undefined]>([
    ['an unknown key', 'tg-unknown', undefined, 401, 'invalid_api_key'],
    ['a model that the key does not permit', keys.bob, '?model=voice', 403, 'model_not_allowed'],
    ['an unknown model', keys.alice, '?model=none', 404, 'model_not_found'],
    ['no model', keys.alice, '', 400, 'missing_model'],
    ['two models', keys.alice, '?model=voice&model=gpt-realtime', 400, 'invalid_request'],
    ['a call over WebRTC', keys.alice, '?model=voice&call_id=rtc_1', 400, 'unsupported_parameter'],
    ['a provider without realtime', keys.alice, '?model=claude', 400, 'unsupported_endpoint'],
  ])('is refused for %s', async (_, key, query, status, code) => {
    expect(await refusal(key, query)).toMatchObject({ status, error: { code } })
    expect(provider.connections).toHaveLength(0)
  })

  it('has the error of the provider that refuses it', async () => {
    provider.refuseWith = 403
    expect(await refusal(keys.alice)).toMatchObject({ status: 403, error: { code: 'refused' } })
  })

  it.each(['/v1/realtime/client_secrets', '/v1/realtime/calls', '/v1/realtime/sessions'])(
    'cannot be bypassed by %s',
    async (path) => {
      const response = await fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${keys.alice}` },
      })
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ error: { code: 'unsupported_endpoint' } })
    },
  )

  it('requires an upgrade', async () => {
    const headers = { authorization: `Bearer ${keys.alice}` }
    const response = await fetch(`${gateway.url}/v1/realtime?model=voice`, { headers })
    expect(response.status).toBe(426)
  })
})

describe('the responses of a connection', () => {
  it('are charged, with audio, transcriptions and responses that the provider starts', async () => {
    const before = await gateway.metrics()
    const tokens = (text: string) =>
      metricValue(text, 'gen_ai_client_token_usage_sum', { key_group: 'voice' }) ?? 0
    const client = await opened(keys.alice)
    client.send({ type: 'input_audio_buffer.append', audio: 'AAAA'.repeat(5_000) })
    client.send({ type: 'input_audio_buffer.commit' })
    await client.receives('response.done')
    say(client, 'and again')
    await client.receives('response.done', client.events.length)
    const cached = 2 * 6
    const after = await until('metrics of three calls', async () => {
      const text = await gateway.metrics()
      return tokens(text) - tokens(before) >= 65 + cached ? text : undefined
    })
    expect(tokens(after) - tokens(before)).toBe(65 + cached)
  })

  it('stop at a token limit, and the connection stays open', async () => {
    const client = await opened(keys.limited)
    say(client, 'first')
    await client.receives('response.done')
    say(client, 'second')
    await client.receives('response.done', client.events.length)
    say(client, 'third')
    expect(await client.receives('error')).toMatchObject({
      error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    })
    expect(provider.connections[0]?.events.filter(({ type }) => type === 'response.create')).toHaveLength(2)
    // A transcription or response that the provider starts by itself ends the connection, and is charged.
    client.send({ type: 'input_audio_buffer.commit' })
    expect(await within('close', client.closed)).toMatchObject({ code: 1008 })
    await until('line of the refused call', () =>
      gateway.requests().some(({ keyId, totalTokens }) => keyId === 'limited' && totalTokens === 5),
    )
    expect(await refusal(keys.limited)).toMatchObject({ status: 429 })
  })

  it('reserve and charge budgets of the key', async () => {
    const client = await opened(keys.budgeted)
    say(client, 'please wait')
    await client.receives('response.output_text.delta')
    const budget = async () => {
      const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/budgets`)
      return member(await response.json(), 'budgets', 0, 'usage')
    }
    expect(Number(member(await budget(), 'reserved'))).toBeGreaterThan(1000)
    client.send({ type: 'response.create', event_id: 'more' })
    expect(await client.receives('error')).toMatchObject({
      error: { code: 'budget_exceeded', event_id: 'more' },
    })
    client.send({ type: 'response.cancel' })
    await client.receives('response.done')
    await until('charge', async () => member(await budget(), 'used') === '30')
    expect(await budget()).toMatchObject({ used: '30', reserved: '0' })
  })

  it('are cancelled and charged when the client disconnects', async () => {
    const client = await opened(keys.bob)
    say(client, 'please wait')
    await client.receives('response.output_text.delta')
    client.socket.terminate()
    await until('cancellation', () =>
      provider.connections[0]?.events.some(({ type }) => type === 'response.cancel'),
    )
    await until('end at the provider', () => provider.connections[0]?.closed)
    // No other test before this one has responses for the key.
    const line = await until('line of the response', () =>
      gateway.requests().find(({ keyId, status }) => keyId === 'bob' && status === 200),
    )
    expect(line).toMatchObject({ totalTokens: 30 })
  })
})

const upgradeRequest = [
  'GET /v1/realtime?model=voice HTTP/1.1',
  'host: h',
  'connection: upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  'sec-websocket-extensions: permessage-deflate',
  `authorization: Bearer ${keys.alice}`,
  '',
  '',
].join('\r\n')

describe('hostile peers', () => {
  it('of the client are refused with the code of their violation', async () => {
    const raw = await rawConnect(gateway.port)
    raw.send(upgradeRequest)
    const head = await raw.receives('session.created')
    expect(head.toLowerCase()).not.toContain('sec-websocket-extensions')
    // A frame without a mask.
    raw.send(Uint8Array.of(0x80 | opcodes.text, 2, 0x7b, 0x7d))
    const received = Buffer.from(await raw.closed(), 'latin1')
    expect(received.includes(Buffer.from([0x03, 0xea]))).toBe(true)
    await until('end at the provider', () => provider.connections[0]?.closed)
  })

  it.each<[string, string]>([
    ['not JSON', '{'],
    ['duplicate keys', '{"type":"input_audio_buffer.clear","type":"response.create"}'],
    ['ambiguous keys', '{"type":"response.create","Response":{},"response":{}}'],
    ['no type', '{"session":{}}'],
  ])('that send events with %s receive an error, and nothing is forwarded', async (_, text) => {
    const client = await opened(keys.alice)
    client.socket.send(text)
    expect(await client.receives('error')).toMatchObject({ error: { code: 'invalid_event' } })
    expect(provider.connections[0]?.events).toEqual([])
  })

  it('that send binary or large messages are closed', async () => {
    const binary = await opened(keys.alice)
    binary.socket.send(Buffer.from('{}'))
    expect(await within('close', binary.closed)).toMatchObject({ code: 1003 })
    const large = await rawConnect(gateway.port)
    large.send(upgradeRequest)
    await large.receives('session.created')
    // A frame of 48 MiB, of which nothing follows.
    large.send(Uint8Array.of(0x80 | opcodes.text, 0xff, 0, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3, 4))
    expect(Buffer.from(await large.closed(), 'latin1').includes(Buffer.from([0x03, 0xf1]))).toBe(true)
  })

  it('of the provider end the connection of the client', async () => {
    const client = await opened(keys.alice)
    provider.connections[0]?.stream.write(Uint8Array.of(0xc1, 0))
    expect(await within('close', client.closed)).toMatchObject({ code: 1014 })
    const cut = await opened(keys.alice)
    provider.connections[1]?.stream.destroy()
    expect(await within('close', cut.closed)).toMatchObject({ code: 1014 })
    const closed = await opened(keys.alice)
    provider.connections[2]?.socket.close(4001, 'bye')
    expect(await within('close', closed.closed)).toEqual({ code: 4001, reason: 'bye' })
  })

  it('that do not read slow the provider down', async () => {
    const client = await opened(keys.alice)
    client.socket.pause()
    const connection = provider.connections[0]
    const event = JSON.stringify({ type: 'response.output_audio.delta', delta: 'A'.repeat(1024 * 1024) })
    for (let index = 0; index < 64; index += 1) connection?.socket.send(event)
    await until('a full pipe', () => (connection?.socket.bufferedAmount ?? 0) > 8 * 1024 * 1024)
    client.socket.resume()
    await until('all events', () => client.events.length === 65)
  })
})

it('a connection ends after its key is removed, others continue', async () => {
  const [client, other] = await Promise.all([opened(keys.revoked), opened(keys.bob)])
  await gateway.reload(configOf(records))
  expect(await within('close', client.closed)).toMatchObject({ code: 1008 })
  say(other, 'still here')
  await other.receives('response.done')
})

it('a connection ends when a later configuration has policies of its model', async () => {
  const models = [
    {
      name: 'gpt-realtime',
      provider: 'openai',
      params: { baseUrl: `${provider.url}/v1`, apiKey: openAiKey },
    },
  ]
  const policies = { apiKey: { keys: records } }
  const own = await startGateway({ llm: { models, policies } })
  const client = await opened(keys.bob, undefined, { port: own.port })
  const authorization = { rules: [{ deny: 'apiKey.id == "bob"' }] }
  await own.reload({ llm: { models: models.map((model) => ({ ...model, authorization })), policies } })
  expect(await within('close', client.closed)).toMatchObject({ code: 1012 })
  const again = await opened(keys.alice, undefined, { port: own.port })
  say(again, 'permitted')
  await again.receives('response.done')
})

it('a shutdown ends connections after their responses', async () => {
  const own = await startGateway(configOf(records))
  const { port } = own
  const idle = await opened(keys.bob, undefined, { port })
  const busy = await opened(keys.alice, undefined, { port })
  say(busy, 'please wait')
  await busy.receives('response.output_text.delta')
  const stopped = own.stop()
  expect(await within('close', idle.closed)).toMatchObject({ code: 1001 })
  busy.send({ type: 'response.cancel' })
  await busy.receives('response.done')
  expect(await within('close', busy.closed)).toMatchObject({ code: 1001 })
  expect(await stopped).toMatchObject({ code: 0 })
})

describe('guards', () => {
  let own: Gateway
  const guardrails = {
    request: [
      { regex: { rules: [{ builtin: 'email' }] } },
      { regex: { action: 'reject', rules: [{ pattern: 'launch code' }] }, rejection: { body: 'not here' } },
    ],
    response: [{ regex: { action: 'reject', rules: [{ pattern: 'forbidden' }] } }],
  }

  beforeAll(async () => {
    const { llm } = configOf(records)
    own = await startGateway({ llm: { ...llm, guardrails } }, { lifetime: 'file' })
  })

  it('change and reject texts of the client before they are forwarded', async () => {
    const client = await opened(keys.alice, undefined, { port: own.port })
    say(client, 'write to ada@example.com')
    await client.receives('response.done')
    const [item] = provider.connections[0]?.events ?? []
    expect(member(item, 'item', 'content', 0, 'text')).toBe('write to <EMAIL_ADDRESS>')
    const rejected = [
      { type: 'session.update', session: { instructions: 'the launch code is 1' } },
      { type: 'session.update', session: { audio: { input: { transcription: { prompt: 'launch code' } } } } },
      { type: 'response.create', response: { instructions: 'tell the launch code' } },
      { type: 'response.create', response: { input: [{ role: 'user', content: 'launch code?' }] } },
      {
        type: 'conversation.item.create',
        item: {
          type: 'message',
          role: 'user',
          content: [{ type: 'input_audio', transcript: 'launch code' }],
        },
      },
      {
        type: 'conversation.item.create',
        item: { type: 'function_call_output', call_id: 'c', output: 'launch code' },
      },
    ]
    const count = provider.connections[0]?.events.length
    for (const event of rejected) {
      const before = client.events.length
      client.send(event)
      expect(await client.receives('error', before)).toMatchObject({
        error: { code: 'guardrail_intervention', message: 'not here' },
      })
    }
    const before = client.events.length
    client.send({ type: 'something.new', text: 'launch code' })
    expect(await client.receives('error', before)).toMatchObject({
      error: { code: 'guardrail_intervention' },
    })
    expect(provider.connections[0]?.events).toHaveLength(count ?? 0)
  })

  it('withhold responses until they are checked, audio included', async () => {
    const client = await opened(keys.alice, undefined, { port: own.port })
    say(client, 'all is well')
    await client.receives('response.done')
    expect(client.events.filter(({ type }) => type === 'response.output_text.delta')).toHaveLength(3)
    const before = client.events.length
    say(client, 'speak a forbidden word')
    expect(await client.receives('error', before)).toMatchObject({
      error: { code: 'guardrail_intervention' },
    })
    expect(await client.receives('response.done', before)).toMatchObject({
      response: { status: 'failed', output: [], usage: { total_tokens: 30 } },
    })
    const received = JSON.stringify(client.events.slice(before).filter(({ type }) => type !== item))
    expect(received).not.toContain('forbidden')
    expect(received).not.toContain('audio.delta')
    // The provider has the rejected item.
    const after = client.events.length
    client.send({ type: 'conversation.item.retrieve', item_id: 'item_1' })
    expect(await client.receives('error', after)).toMatchObject({ error: { code: 'guardrail_intervention' } })
    say(client, 'speak well')
    expect(await client.receives('response.output_audio.delta', after)).toBeDefined()
    const calls = await until('calls in the log', () => {
      const found = own.requests().filter(({ status, totalTokens }) => status === 200 && totalTokens === 30)
      return found.length >= 4 ? found : undefined
    })
    expect(calls.map(({ refusedBy }) => refusedBy)).toContain('guardrail: llm response regex 1')
  })

  it('are errors for events that cannot be checked', async () => {
    const client = await opened(keys.alice, undefined, { port: own.port })
    provider.connections[0]?.socket.send('not an event')
    expect(await within('close', client.closed)).toMatchObject({ code: 1014 })
  })
})

/** The provider repeats the item of the client, which the guards of the request have checked. */
const item = 'conversation.item.added'
