import { describe, expect, it } from 'vitest'
import { createCancellation } from '../../../../lib/cancellation.ts'
import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import type { MessageFlow, TargetFailure } from '../../message/message.ts'
import type { CallContext } from '../target.ts'
import { createDuplexSession, type WireListener } from './duplex.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {}, audit() {} }

function context(): CallContext {
  return { headers: {}, cancellation: createCancellation() }
}

type Heard = { texts: string[]; values: JsonObject[]; end: 'end' | TargetFailure | undefined; room: boolean }

/** A session over a wire that records sent messages and delivers messages of the test. */
function createSession() {
  const sent: string[] = []
  const garbage: string[] = []
  const wire = { opened: 0, paused: false, closed: false, refusing: undefined as TargetFailure | undefined }
  let listener: WireListener | undefined
  const session = createDuplexSession({
    name: 'files',
    log: silent,
    open(listening) {
      listener = listening
      wire.opened += 1
      return {
        send(text, _, done) {
          sent.push(text)
          done(wire.refusing)
        },
        pause() {
          wire.paused = true
        },
        resume() {
          wire.paused = false
        },
        close() {
          wire.closed = true
          return Promise.resolve()
        },
      }
    },
    onInvalid: (text, problem) => garbage.push(`${problem}: ${text}`),
  })
  const say = (value: JsonObject | string) =>
    listener?.message(typeof value === 'string' ? value : JSON.stringify(value))
  return {
    session,
    sent,
    garbage,
    wire,
    say,
    die: (reason: string) => listener?.ended(reason),
    request(text: string, bounds: Pick<CallContext, 'maxResponseBytes'> = {}) {
      const { sink, heard } = hear()
      const call = { ...context(), ...bounds }
      return { heard, flow: session.request({ text, value: JSON.parse(text) }, call, sink) }
    },
    async listen() {
      const { sink, heard } = hear()
      const listening = await session.listen(context(), sink)
      if (listening.kind !== 'flow') throw new Error('no stream')
      await new Promise(setImmediate)
      return { heard, flow: listening.flow }
    },
    deliver: (text: string) => session.deliver({ text, value: JSON.parse(text) }, context()),
  }
}

function hear() {
  const heard: Heard = { texts: [], values: [], end: undefined, room: true }
  const sink = {
    message({ text, value }: { text: string; value: JsonObject }) {
      heard.texts.push(text)
      heard.values.push(value)
      return heard.room
    },
    mark() {},
    end() {
      heard.end = 'end' as const
    },
    fail(failure: TargetFailure) {
      heard.end = failure
    },
  }
  return { sink, heard }
}

/** The id that the wire knows a request by. */
function wireId(text: string | undefined): number {
  const value: unknown = JSON.parse(text ?? '')
  const id = isJsonObject(value) ? value['id'] : undefined
  if (typeof id !== 'number') throw new Error(`no id in ${text}`)
  return id
}

const list = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`

describe('a session over one wire', () => {
  it('opens the wire with the first message only', () => {
    const { request, wire } = createSession()
    expect(wire.opened).toBe(0)
    request(list('1'))
    request(list('2'))
    expect(wire.opened).toBe(1)
  })

  it('leaves a request and its answer as they are, but for the id on the wire', () => {
    const { request, sent, say } = createSession()
    const { heard } = request('{ "jsonrpc":"2.0", "method":"x", "big": 12345678901234567890, "id" : "a" }')
    const id = wireId(sent[0])
    expect(sent[0]).toBe(`{ "jsonrpc":"2.0", "method":"x", "big": 12345678901234567890, "id" : ${id} }`)
    say(`{"result":{"n":1.10},"id":${id}, "jsonrpc":"2.0","extra":[]}`)
    expect(heard.texts).toEqual(['{"result":{"n":1.10},"id":"a", "jsonrpc":"2.0","extra":[]}'])
    expect(heard.values[0]?.['id']).toBe('a')
    expect(heard.end).toBe('end')
  })

  it('keeps requests of equal and of look-alike ids apart', () => {
    const { request, sent, say } = createSession()
    const calls = ['1', '"1"', '1', '1.0', '12345678901234567890'].map((id) => request(list(id)))
    const ids = sent.map(wireId)
    expect(new Set(ids).size).toBe(5)
    for (const id of ids.toReversed()) say({ jsonrpc: '2.0', id, result: { wire: id } })
    expect(calls.map(({ heard }) => heard.texts[0])).toEqual([
      `{"jsonrpc":"2.0","id":1,"result":{"wire":${ids[0]}}}`,
      `{"jsonrpc":"2.0","id":"1","result":{"wire":${ids[1]}}}`,
      `{"jsonrpc":"2.0","id":1,"result":{"wire":${ids[2]}}}`,
      `{"jsonrpc":"2.0","id":1.0,"result":{"wire":${ids[3]}}}`,
      `{"jsonrpc":"2.0","id":12345678901234567890,"result":{"wire":${ids[4]}}}`,
    ])
  })

  it('ignores answers to nothing, and a second answer', () => {
    const { request, sent, say } = createSession()
    const { heard } = request(list('1'))
    const id = wireId(sent[0])
    say({ jsonrpc: '2.0', id: 999, result: {} })
    say({ jsonrpc: '2.0', id: String(id), result: {} })
    say({ jsonrpc: '2.0', id, result: { first: true } })
    say({ jsonrpc: '2.0', id, result: { first: false } })
    expect(heard.values.map(({ result }) => result)).toEqual([{ first: true }])
  })

  it('gives an error without an id to the only request there is', () => {
    const { request, say } = createSession()
    const { heard } = request(list('7'))
    say({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } })
    expect(heard.values[0]).toMatchObject({ id: 7, error: { code: -32700 } })
  })

  it('delivers progress to the request of its token, despite other requests and streams', async () => {
    const { request, say, listen } = createSession()
    const withToken = (id: number, token: unknown) =>
      request(
        JSON.stringify({
          jsonrpc: '2.0',
          id,
          method: 'tools/call',
          params: { _meta: { progressToken: token } },
        }),
      )
    const [one, other] = [withToken(1, 'a'), withToken(2, 5)]
    const stream = await listen()
    say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 5, progress: 1 } })
    say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'a', progress: 2 } })
    say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: '5', progress: 3 } })
    expect([one, other, stream].map(({ heard }) => heard.values.map(({ params }) => params))).toEqual([
      [{ progressToken: 'a', progress: 2 }],
      [{ progressToken: 5, progress: 1 }],
      [{ progressToken: '5', progress: 3 }],
    ])
  })

  it('delivers other messages to the only pending request, in order', async () => {
    const { request, say, sent, listen } = createSession()
    const stream = await listen()
    const { heard } = request(list('1'))
    say({ jsonrpc: '2.0', method: 'notifications/message', params: {} })
    say({ jsonrpc: '2.0', id: 's1', method: 'sampling/createMessage', params: {} })
    say({ jsonrpc: '2.0', id: wireId(sent[0]), result: {} })
    expect(heard.values.map(({ method = 'result' }) => method)).toEqual([
      'notifications/message',
      'sampling/createMessage',
      'result',
    ])
    expect(stream.heard.texts).toEqual([])
  })

  it('delivers messages outside requests to the stream, and to the latest request without a stream', async () => {
    const { request, say, listen } = createSession()
    const [first, latest] = [request(list('1')), request(list('2'))]
    say({ jsonrpc: '2.0', id: 's1', method: 'elicitation/create' })
    const stream = await listen()
    say({ jsonrpc: '2.0', id: 's2', method: 'elicitation/create' })
    expect([first, latest, stream].map(({ heard }) => heard.values.map(({ id }) => id))).toEqual([
      [],
      ['s1'],
      ['s2'],
    ])
  })

  it('queues messages for the next stream, in order', async () => {
    const { session, request, say, sent, listen } = createSession()
    request(list('1'))
    say({ jsonrpc: '2.0', id: wireId(sent[0]), result: {} })
    for (let n = 1; n <= 3; n += 1) say({ jsonrpc: '2.0', method: 'notifications/x', params: { n } })
    const { heard } = await listen()
    expect(heard.values.map(({ params }) => params)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    await session.close()
    expect(heard.end).toBe('end')
  })

  it('bounds the queue without a stream, and rejects dropped server requests', () => {
    const { request, say, sent } = createSession()
    request(list('1'))
    say({ jsonrpc: '2.0', id: wireId(sent[0]), result: {} })
    for (let id = 0; id < 300; id += 1) say({ jsonrpc: '2.0', id, method: 'roots/list' })
    expect(sent).toHaveLength(1 + 300 - 256)
    expect(JSON.parse(sent[1] ?? '')).toMatchObject({
      id: 0,
      error: { message: 'the client has no open stream' },
    })
  })

  it('lets a new listener take the place of the former one', async () => {
    const { request, say, sent, listen } = createSession()
    request(list('1'))
    say({ jsonrpc: '2.0', id: wireId(sent[0]), result: {} })
    const former = await listen()
    const present = await listen()
    former.flow.cancel()
    say({ jsonrpc: '2.0', method: 'notifications/x' })
    expect(former.heard).toMatchObject({ texts: [], end: 'end' })
    expect(present.heard.texts).toHaveLength(1)
  })

  it('does not reach a sink before its caller has the flow', async () => {
    const { session, request, say, sent } = createSession()
    request(list('1'))
    say({ jsonrpc: '2.0', id: wireId(sent[0]), result: {} })
    for (let n = 1; n <= 2; n += 1) say({ jsonrpc: '2.0', method: 'notifications/x', params: { n } })
    const { sink, heard } = hear()
    heard.room = false
    let flow: MessageFlow | undefined
    const listening = session.listen(context(), sink).then((result) => {
      expect(heard.texts).toEqual([])
      if (result.kind === 'flow') flow = result.flow
    })
    await listening
    await new Promise(setImmediate)
    expect(heard.texts).toHaveLength(1)
    flow?.resume()
    expect(heard.texts).toHaveLength(2)
  })

  it('names a cancelled request by its id on the wire, and waits for it no longer', async () => {
    const { request, sent, deliver, say } = createSession()
    request(list('1'))
    const { heard } = request(list('"a"'))
    const id = wireId(sent[1])
    const text =
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId": "a","reason":"no"}}'
    expect(await deliver(text)).toBe(undefined)
    expect(sent[2]).toBe(text.replace('"a"', String(id)))
    expect(heard.end).toMatchObject({ kind: 'refused', status: 200 })
    say({ jsonrpc: '2.0', id, result: {} })
    expect(heard.texts).toEqual([])
  })

  it('drops a cancellation of nothing, which could hit another request on the wire', async () => {
    const { request, sent, deliver } = createSession()
    request(list('"a"'))
    for (const params of [`{"requestId":${wireId(sent[0])}}`, '{"requestId":"b"}', '{}', '7', 'null']) {
      expect(await deliver(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`)).toBe(
        undefined,
      )
    }
    expect(sent).toHaveLength(1)
  })

  it('passes on answers and other notifications of the client as they are', async () => {
    const { sent, deliver } = createSession()
    const texts = [
      '{"jsonrpc": "2.0","id":"s1", "result":{}}',
      '{"method":"notifications/initialized","jsonrpc":"2.0"}',
    ]
    for (const text of texts) await deliver(text)
    expect(sent).toEqual(texts)
  })

  it('reports garbage, and fails the request whose answer it is', () => {
    const { request, say, sent, garbage } = createSession()
    const [one, other] = [request(list('1')), request(list('2'))]
    say('hello')
    say('[1]')
    say(`{"id":${wireId(sent[1])},"result":{"a":1,"a":2}}`)
    expect(garbage).toHaveLength(3)
    expect(one.heard.end).toBe(undefined)
    expect(other.heard.end).toMatchObject({ kind: 'error', error: { code: 'upstream_invalid' } })
  })

  it('fails a request that could not be sent, with the reason', () => {
    const { request, wire } = createSession()
    wire.refusing = { kind: 'ended', reason: 'gone' }
    expect(request(list('1')).heard.end).toEqual({ kind: 'ended', reason: 'gone' })
  })

  it('fails all requests once when the wire ends, and rejects new ones', async () => {
    const { session, request, die, wire, say, listen } = createSession()
    const deaths: string[] = []
    session.onTerminated((reason) => deaths.push(reason))
    const stream = await listen()
    const { heard } = request(list('1'))
    say({ jsonrpc: '2.0', method: 'notifications/x' })
    die('exit code 1')
    die('again')
    expect(heard.end).toMatchObject({
      kind: 'error',
      error: { code: 'upstream_reset', message: 'target "files" ended: exit code 1' },
    })
    expect([stream.heard.end, deaths, wire.closed]).toEqual([
      'end',
      ['target "files" ended: exit code 1'],
      true,
    ])
    const late = request(list('2'))
    expect(late.heard.end).toBe(undefined)
    await Promise.resolve()
    expect(late.heard.end).toEqual({ kind: 'ended', reason: 'exit code 1' })
    expect(await session.deliver({ text: '{}', value: {} }, context())).toMatchObject({ kind: 'ended' })
    expect(await session.listen(context(), hear().sink)).toMatchObject({ kind: 'failed' })
  })

  it('reports a target without any message as not available', () => {
    const { request, die } = createSession()
    const { heard } = request(list('1'))
    die('command not found')
    expect(heard.end).toMatchObject({ kind: 'error', error: { code: 'upstream_connect' } })
  })

  it('closes the wire with the session, which is no death', async () => {
    const { session, request, die, wire } = createSession()
    const deaths: string[] = []
    session.onTerminated((reason) => deaths.push(reason))
    const { heard } = request(list('1'))
    await session.close()
    die('signal SIGTERM')
    await session.close()
    expect(heard.end).toEqual({ kind: 'ended', reason: 'the session was ended' })
    expect([wire.closed, deaths]).toEqual([true, []])
  })

  it('stops the wire while too much waits for a reader, and not for a reader that left', async () => {
    const { request, say, wire, sent } = createSession()
    const { heard, flow } = request(list('1'))
    const healthy = request(list('2'))
    heard.room = false
    const text = 'x'.repeat(100_000)
    for (let n = 0; n < 12; n += 1) {
      say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'none', text } })
    }
    expect(wire.paused).toBe(false)
    expect(healthy.heard.texts).toHaveLength(12)
    healthy.flow.cancel()
    for (let n = 0; n < 12; n += 1) say({ jsonrpc: '2.0', method: 'notifications/x', params: { text } })
    expect(wire.paused).toBe(true)
    flow.cancel()
    expect(wire.paused).toBe(false)
    say({ jsonrpc: '2.0', id: wireId(sent[0]), result: {} })
    expect(heard.end).toBe(undefined)
  })

  it('refuses more requests than a client could mean to have under way', async () => {
    const { request } = createSession()
    for (let id = 0; id < 1024; id += 1) request(list(String(id)))
    const { heard } = request(list('1'))
    await Promise.resolve()
    expect(heard.end).toMatchObject({
      kind: 'error',
      error: { message: expect.stringContaining('too many') },
    })
  })
})

describe('a large response', () => {
  const padding = 'x'.repeat(2 * 1024 * 1024)
  const result = `{"text":"${padding}"}`
  const shapes: [string, (id: number) => string][] = [
    ['first', (id) => `{"id":${id},"jsonrpc":"2.0","result":${result}}`],
    ['behind the version', (id) => `{"jsonrpc": "2.0", "id": ${id}, "result":${result}}`],
    ['last', (id) => `{"result":${result},"jsonrpc":"2.0","id":${id}}`],
    ['before the version', (id) => `{"result":${result},"id":${id},"jsonrpc":"2.0"}`],
  ]

  it.each(shapes)('fails the request that bounds its answer, with its id %s', (_, text) => {
    const { request, say, sent } = createSession()
    const bounded = request('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {
      maxResponseBytes: 1024 * 1024,
    })
    const other = request('{"jsonrpc":"2.0","id":2,"method":"tools/call"}')
    say(text(wireId(sent[0])))
    expect(bounded.heard.end).toMatchObject({ kind: 'error', error: { code: 'upstream_too_large' } })
    expect(other.heard.end).toBe(undefined)
    say(text(wireId(sent[1])))
    expect(other.heard.end).toBe('end')
  })

  it.each(shapes)('of too many parts fails its request and no other, with its id %s', (_, text) => {
    const { request, say, sent } = createSession()
    const one = request('{"jsonrpc":"2.0","id":1,"method":"tools/call"}')
    const other = request('{"jsonrpc":"2.0","id":2,"method":"tools/call"}')
    say(
      text(wireId(sent[0])).replace(
        '"text":',
        `"parts":[${'{},'.repeat(110_000)}{"id":${wireId(sent[1])}}],"text":`,
      ),
    )
    expect(one.heard.end).toMatchObject({
      error: { message: expect.stringContaining('more than 100000 objects') },
    })
    expect(other.heard.end).toBe(undefined)
  })
})
