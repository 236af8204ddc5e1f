import { describe, expect, it } from 'vitest'
import { collect, fakeTarget, fixtureContext, request, settle } from '../../../../test/fixtures/mcp.ts'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { federate } from '../federation/federation.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { Message, MessageSink, TargetFailure } from '../message/message.ts'
import type { RecordedCall } from '../targets/target.ts'
import { createLoginLinks } from './links.ts'
import { withUserLogin } from './login-session.ts'
import type { CallToken, TargetLogin } from './target-login.ts'
import { withUserAuthorization } from './user-authorization.ts'

const context = fixtureContext({ caller: fixtureExchange() })
const none = { kind: 'none', url: 'https://a.test/oauth/start' } as const
const unauthorized: TargetFailure = {
  kind: 'reply',
  reply: { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: Buffer.from('who?') },
}

/** A login with the same token for all calls. */
function loginWith(token: CallToken): TargetLogin {
  const unexpected = () => Promise.reject(new Error('unexpected'))
  return {
    target: 't',
    publicUrl: new URL('https://a.test'),
    links: createLoginLinks(new Uint8Array(32), 'x', () => 0),
    service: { token: unexpected, authorize: unexpected, redeem: unexpected },
    link: () => none.url,
    token: async (_, refused) => renewed(token, refused),
  }
}

const renewed = (token: CallToken, refused: string | undefined): CallToken =>
  token.kind === 'token' && token.token === refused ? { kind: 'token', token: `${refused}, renewed` } : token

function world(behaviours: Parameters<typeof fakeTarget>[1] = {}) {
  const state: { token: CallToken; refused: (string | undefined)[]; wait?: Promise<void> } = {
    ...{ token: none, refused: [] },
  }
  const login: TargetLogin = {
    ...loginWith(none),
    async token(_, refused) {
      state.refused.push(refused)
      await state.wait
      return renewed(state.token, refused)
    },
  }
  const target = fakeTarget('t', behaviours)
  const combined = withUserLogin(withUserAuthorization({ ...target, login }))
  async function ask(session: ReturnType<typeof combined.open>, method: string, params = {}) {
    const sink = collect()
    session.request(request(1, method, params), context, sink)
    for (let turn = 0; turn < 10; turn += 1) await settle()
    return sink
  }
  return { state, target, combined, ask }
}

describe('before the login', () => {
  it.each(['tools/call', 'tools/list', 'server/discover'])(
    'a request without initialize fails with the link: %s',
    async (method) => {
      const { combined, ask, target } = world()
      expect((await ask(combined.open(), method)).failure).toMatchObject({
        ...{ kind: 'refused', status: 403, code: -32042 },
        data: { elicitations: [{ mode: 'url', url: none.url }] },
      })
      expect(target.sessions).toEqual([])
    },
  )

  it('the gateway answers discovery and lists of revision 2026-07-28', async () => {
    const { combined, target, state } = world({
      behaviours: { 'tools/list': () => ({ tools: [{ name: 'read' }] }) },
    })
    const ask = async (method: string, params = {}) => {
      const sink = collect()
      const sessionless = { ...context, protocolVersion: '2026-07-28' }
      combined.open().request(request(1, method, params), sessionless, sink)
      for (let turn = 0; turn < 10; turn += 1) await settle()
      return sink
    }
    const cached = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
    expect((await ask('server/discover')).messages).toMatchObject([
      { result: { ...cached, supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } },
    ])
    expect((await ask('tools/list')).messages).toMatchObject([
      { result: { ...cached, tools: [{ name: 'sign_in' }] } },
    ])
    expect((await ask('prompts/list')).messages).toMatchObject([{ result: { ...cached, prompts: [] } }])
    const told = await ask('tools/call', { name: 'sign_in' })
    expect(JSON.stringify(told.messages)).toContain(none.url)
    expect((await ask('tools/call', { name: 'read' })).failure).toMatchObject({ code: -32042 })
    expect((await ask('subscriptions/listen', { notifications: {} })).messages).toMatchObject([
      { method: 'notifications/subscriptions/acknowledged', params: { notifications: {} } },
      { id: 1, result: { resultType: 'complete' } },
    ])
    expect(target.sessions).toEqual([])
    state.token = { kind: 'token', token: 'a' }
    expect((await ask('tools/list')).messages).toMatchObject([{ result: { tools: [{ name: 'read' }] } }])
  })

  it('the gateway answers, and the session continues elsewhere', async () => {
    const { combined, ask, target, state } = world({
      behaviours: { 'tools/list': () => ({ tools: [{ name: 'read' }] }) },
    })
    const session = combined.open()
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    }
    const begun = await ask(session, 'initialize', params)
    expect(begun.messages[0]).toMatchObject({ result: { protocolVersion: '2025-06-18' } })
    expect(await session.deliver(messageOf({ jsonrpc: '2.0', method: 'x' }), context)).toBeUndefined()
    expect((await session.listen(context, collect())).kind).toBe('none')
    expect((await ask(session, 'prompts/list')).messages[0]).toMatchObject({ result: { prompts: [] } })
    const resumed = combined.resume(session.state() ?? {})
    if (resumed === undefined) throw new Error('no session')
    expect((await ask(resumed, 'tools/list')).messages[0]).toMatchObject({
      result: { tools: [{ name: 'sign_in' }] },
    })
    state.token = { kind: 'token', token: 'a' }
    expect((await ask(resumed, 'tools/list')).messages[0]).toMatchObject({
      result: { tools: [{ name: 'read' }] },
    })
    expect(target.sessions[0]?.requests.map(({ method }) => method)).toEqual(['initialize', 'tools/list'])
    expect(target.sessions[0]?.delivered).toMatchObject([{ method: 'notifications/initialized' }])
    expect(target.sessions[0]?.contexts.map(({ headers }) => headers['authorization'])).toEqual(
      Array(3).fill('Bearer a'),
    )
  })

  it('parameters of a large initialize are not part of the state', async () => {
    const { combined, ask } = world()
    const session = combined.open()
    await ask(session, 'initialize', {
      protocolVersion: '2025-11-25',
      clientInfo: { name: 'x'.repeat(9_000) },
    })
    expect(JSON.stringify(session.state()).length).toBeLessThan(300)
  })

  it('an anonymous client is refused', async () => {
    const { combined, ask, state } = world()
    const failure: TargetFailure = { kind: 'refused', status: 403, code: -32600, message: 'no user' }
    state.token = { kind: 'refused', failure }
    expect((await ask(combined.open(), 'initialize')).failure).toEqual(failure)
  })
})

describe('a refused token', () => {
  it('is replaced once, and its challenge hidden', async () => {
    let calls = 0
    const behaviours = {
      'tools/call': () => {
        calls += 1
        return calls === 2 ? { content: [] } : unauthorized
      },
    }
    const { combined, ask, state } = world({ behaviours })
    state.token = { kind: 'token', token: 'a' }
    const session = combined.open()
    await ask(session, 'initialize')
    expect((await ask(session, 'tools/call')).messages[0]).toMatchObject({ result: { content: [] } })
    expect(state.refused).toEqual([undefined, undefined, undefined, 'a'])
    expect((await ask(session, 'tools/call')).failure).toMatchObject({ kind: 'error' })
    expect(calls).toBe(4)
  })
})

describe('a token that cannot be renewed', () => {
  it('is not sent again', async () => {
    let calls = 0
    const behaviours = {
      'tools/call': () => {
        calls += 1
        return unauthorized
      },
    }
    const token = async () => ({ kind: 'token', token: 'a' }) as const
    const login = { ...loginWith(none), token }
    const session = withUserAuthorization({ ...fakeTarget('t', { behaviours }), login }).open()
    const sink = collect()
    session.request(request(1, 'tools/call'), context, sink)
    for (let turn = 0; turn < 10; turn += 1) await settle()
    expect([calls, sink.failure?.kind]).toEqual([1, 'error'])
  })
})

describe('a call with the token of its user', () => {
  it('fails with the link after a challenge for more permissions', async () => {
    const headers = { 'www-authenticate': 'Bearer error="insufficient_scope"' }
    const forbidden: TargetFailure = { kind: 'reply', reply: { status: 403, headers, body: undefined } }
    const { combined, ask, state, target } = world({ behaviours: { 'tools/call': () => forbidden } })
    state.token = { kind: 'token', token: 'a' }
    const session = combined.open()
    await ask(session, 'initialize')
    const expected = {
      kind: 'refused',
      status: 403,
      code: -32042,
      data: { elicitations: [{ url: none.url }] },
    }
    expect((await ask(session, 'tools/call')).failure).toMatchObject(expected)
    target.refusals['x'] = forbidden
    expect(await session.deliver(messageOf({ jsonrpc: '2.0', method: 'x' }), context)).toMatchObject(expected)
    target.listenFailure = forbidden
    expect(await session.listen(context, collect())).toMatchObject({ kind: 'failed', failure: expected })
  })

  it('is not sent after its cancellation', async () => {
    const { combined, ask, state, target } = world()
    state.token = { kind: 'token', token: 'a' }
    const session = combined.open()
    await ask(session, 'initialize')
    const wait = Promise.withResolvers<void>()
    state.wait = wait.promise
    session.request(request(2, 'tools/call'), context, collect()).cancel()
    wait.resolve()
    for (let turn = 0; turn < 10; turn += 1) await settle()
    expect(target.sessions[0]?.requests.map(({ method }) => method)).toEqual(['initialize'])
  })

  it('reaches the target as a notification without initialize', async () => {
    const { combined, state, target } = world()
    const notification = messageOf({ jsonrpc: '2.0', method: 'notifications/x' })
    expect(await combined.open().deliver(notification, context)).toBeUndefined()
    expect(target.sessions).toEqual([])
    state.token = { kind: 'token', token: 'a' }
    expect(await combined.open().deliver(notification, context)).toBeUndefined()
    expect(target.sessions[0]?.delivered).toMatchObject([{ method: 'notifications/x' }])
  })
})

describe('a session closed while it connects', () => {
  const initialize = { protocolVersion: '2025-11-25', capabilities: {} }

  it('ends the session at the target', async () => {
    let answer = () => {}
    const behaviours = {
      initialize: (_: object, sink: MessageSink, { value }: Message) => {
        answer = () => {
          sink.message(messageOf({ jsonrpc: '2.0', id: value['id'] ?? null, result: {} }))
          sink.end()
        }
        return undefined
      },
    }
    const { combined, ask, state, target } = world({ behaviours })
    const session = combined.open()
    await ask(session, 'initialize', initialize)
    state.token = { kind: 'token', token: 'a' }
    const pending = await ask(session, 'tools/list')
    await session.close()
    expect(target.sessions[0]?.closed).toBe(1)
    answer()
    for (let turn = 0; turn < 10; turn += 1) await settle()
    expect(pending.failure).toMatchObject({ kind: 'ended' })
    expect(target.sessions[0]?.delivered).toEqual([])
    expect((await ask(session, 'tools/list')).failure).toMatchObject({ kind: 'ended' })
    expect(target.sessions).toHaveLength(1)
  })

  it('opens none if it still waits for the token', async () => {
    const { combined, ask, state, target } = world()
    const wait = Promise.withResolvers<void>()
    Object.assign(state, { token: { kind: 'token', token: 'a' }, wait: wait.promise })
    const session = combined.open()
    const pending = await ask(session, 'initialize', initialize)
    const delivered = session.deliver(messageOf({ jsonrpc: '2.0', method: 'x' }), context)
    await session.close()
    wait.resolve()
    expect(await delivered).toBeUndefined()
    for (let turn = 0; turn < 10; turn += 1) await settle()
    expect(pending.failure).toMatchObject({ kind: 'ended' })
    expect(target.sessions).toEqual([])
  })
})

describe('a call that the target refuses first', () => {
  it('is checked, limited and recorded once', async () => {
    let calls = 0
    const target = fakeTarget('t', {
      behaviours: {
        'tools/call': () => {
          calls += 1
          return calls === 1 ? unauthorized : { content: [] }
        },
      },
    })
    const federation = federate([{ ...target, login: loginWith({ kind: 'token', token: 'a' }) }], {
      ...{ prefixMode: 'conditional', failOpen: false, version: '1', initializeTimeoutMs: 1_000 },
    })
    const session = federation?.target.open()
    const counts = { rules: 0, requests: 0, results: 0, records: 0 }
    const attempt = { startedAt: undefined } as unknown as RecordedCall['attempt']
    const checked = fixtureContext({
      caller: fixtureExchange(),
      permissions: {
        permits() {
          counts.rules += 1
          return true
        },
        permitsMethod: () => true,
      },
      checks: {
        request(message) {
          counts.requests += 1
          return { kind: 'forward', message, headers: [] }
        },
        checksResult: () => true,
        async result(_request, _target, response) {
          counts.results += 1
          return response
        },
      },
      recorder: {
        begin() {
          counts.records += 1
          return { attempt, span: undefined }
        },
        received() {},
        ended() {},
      },
    })
    const sink = collect()
    session?.request(request(1, 'tools/call', { name: 'read' }), checked, sink)
    for (let turn = 0; turn < 20; turn += 1) await settle()
    expect(sink.messages).toMatchObject([{ id: 1, result: { content: [] } }])
    expect([calls, counts]).toEqual([2, { rules: 1, requests: 1, results: 1, records: 1 }])
  })
})
