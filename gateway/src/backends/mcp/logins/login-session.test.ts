import { describe, expect, it } from 'vitest'
import { collect, fakeTarget, fixtureContext, request, settle } from '../../../../test/fixtures/mcp.ts'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { TargetFailure } from '../message/message.ts'
import { createLoginLinks } from './links.ts'
import { withUserLogin } from './login-session.ts'
import type { CallToken, TargetLogin } from './target-login.ts'

const context = fixtureContext({ caller: fixtureExchange() })
const none = { kind: 'none', url: 'https://a.test/oauth/start' } as const
const unauthorized: TargetFailure = {
  kind: 'reply',
  reply: { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: Buffer.from('who?') },
}

function world(behaviours: Parameters<typeof fakeTarget>[1] = {}) {
  const state: { token: CallToken; refused: (string | undefined)[]; wait?: Promise<void> } = {
    ...{ token: none, refused: [] },
  }
  const login: TargetLogin = {
    target: 't',
    publicUrl: new URL('https://a.test'),
    links: createLoginLinks(new Uint8Array(32), 'x', () => 0),
    service: {
      token: () => Promise.reject(new Error('unexpected')),
      authorize: () => Promise.reject(new Error('unexpected')),
      redeem: () => Promise.reject(new Error('unexpected')),
    },
    link: () => none.url,
    async token(_, refused) {
      state.refused.push(refused)
      await state.wait
      return state.token
    },
  }
  const target = fakeTarget('t', behaviours)
  const combined = withUserLogin({ ...target, login })
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
