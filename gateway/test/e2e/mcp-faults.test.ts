import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { isRunning } from '../support/is-running.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { httpFaults, startFaultyServer } from '../support/mcp-faulty-server.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { initializeMessage, mcpHeaders, openSession, post, type RawSession } from '../support/mcp-raw.ts'
import { member, sendJson, startMockServer } from '../support/mock-server.ts'
import { until, within } from '../support/wait.ts'

// Targets that fail in the middle of a call, and clients that disconnect.

const call = (name: string, args = {}) => ({
  jsonrpc: '2.0',
  id: 'c1',
  method: 'tools/call',
  params: { name, arguments: args },
})

async function withProgram(...flags: string[]): Promise<{ gateway: Gateway; session: RawSession }> {
  const gateway = await startGateway({ mcp: { targets: [programTarget('files', ...flags)] } })
  return { gateway, session: await openSession(gateway.mcpUrl) }
}

async function textFrom(session: RawSession, name: string): Promise<unknown> {
  return member(await session.request('tools/call', { name }), 'content', 0, 'text')
}

/** A server whose answers to the requests of `method` never begin; others have an empty result. */
function startMuteServer(method: string) {
  return startMockServer(({ json }, response) => {
    const id = member(json, 'id')
    if (id === undefined) response.writeHead(202).end()
    else if (member(json, 'method') !== method) {
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        serverInfo: { name: 'mute', version: '1' },
      }
      sendJson(response, { status: 200, body: { jsonrpc: '2.0', id, result } })
    }
  })
}

describe('a server that does not answer', () => {
  it('has no request left once initialize has timed out', async () => {
    const server = await startMuteServer('initialize')
    const targets = [{ name: 'mute', mcp: { host: server.url } }]
    const gateway = await startGateway({ mcp: { targets, initializeTimeout: '300ms' } })
    await within('initialize fails', post(gateway.mcpUrl, initializeMessage))
    await until('the request is ended', () => server.seen[0]?.aborted === true)
  })

  it('has no call left once the client has ended the session', async () => {
    const server = await startMuteServer('tools/call')
    const gateway = await startGateway({ mcp: { targets: [{ name: 'mute', mcp: { host: server.url } }] } })
    const session = await openSession(gateway.mcpUrl)
    const answer = session.send(call('slow'))
    const seen = () => server.seen.find(({ json }) => member(json, 'method') === 'tools/call')
    await until('the call has come', () => seen() !== undefined)
    await session.end()
    await within('the call is answered', answer)
    await until('the call is ended', () => seen()?.aborted === true)
  })
})

describe('a program behind the endpoint', () => {
  it('that dies in a call fails the call, and ends its session', async () => {
    const { gateway, session } = await withProgram()
    const answer = await within('the call fails', session.send(call('crash')))
    expect(answer.text).toContain('exit code 3')
    const error = answer.messages.at(-1)
    expect(error).toMatchObject({ jsonrpc: '2.0', id: 'c1', error: { code: expect.any(Number) } })
    // 404 makes clients open a new session: the program is not restarted within the session.
    const ended = await session.send(call('whoami'))
    expect(ended.status).toBe(404)
    expect(member(ended.messages[0], 'error', 'message')).toBe(
      'Session not found: target "files" ended: exit code 3',
    )
    const next = await openSession(gateway.mcpUrl)
    expect(await textFrom(next, 'whoami')).toBe('files')
    await until('its last words are in the log', () => gateway.stdout().includes('crashing as asked'))
  })

  it('that dies at once fails initialize', async () => {
    const gateway = await startGateway({ mcp: { targets: [programTarget('files', '--dies')] } })
    const answer = await within('initialize fails', post(gateway.mcpUrl, initializeMessage))
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.text).toContain('exit code 7')
    expect(answer.headers.get('mcp-session-id')).toBe(null)
  })

  it('that does not exist fails initialize with the reason', async () => {
    const targets = [{ name: 'files', stdio: { cmd: 'no-such-program-of-tollgate' } }]
    const gateway = await startGateway({ mcp: { targets } })
    const answer = await post(gateway.mcpUrl, initializeMessage)
    expect(answer.status).toBe(503)
    expect(answer.text).toContain('command not found')
  })

  it('that writes garbage is understood nevertheless', async () => {
    const { gateway, session } = await withProgram()
    expect(await textFrom(session, 'garbage')).toBe('after the garbage')
    await until('the garbage is in the log', () => gateway.stdout().includes('this is no message'))
  })

  it('that responds to unknown ids does not confuse the session', async () => {
    const { session } = await withProgram()
    expect(await textFrom(session, 'wrong-id')).toBe('for you')
  })

  it('that floods ends its session, and no other', async () => {
    const { gateway, session } = await withProgram()
    const other = await openSession(gateway.mcpUrl)
    const answer = await within('the flood ends', session.send(call('flood')), 25_000)
    expect(answer.messages.at(-1)).toMatchObject({ id: 'c1', error: {} })
    expect(await textFrom(other, 'whoami')).toBe('files')
  })

  it('that hangs blocks nothing else, in its session or another', async () => {
    const { session } = await withProgram()
    const hanging = session.send(call('hang'))
    expect(await textFrom(session, 'whoami')).toBe('files')
    // The gateway ends the response of a request that the client cancelled; the program sends nothing more.
    const cancelled = {
      method: 'notifications/cancelled',
      params: { requestId: 'c1', reason: 'no longer needed' },
    }
    expect((await session.send({ jsonrpc: '2.0', ...cancelled })).status).toBe(202)
    await within('the cancelled call ends', hanging)
    expect(await textFrom(session, 'whoami')).toBe('files')
  })

  it('hears of cancellations under the ids it knows, and not of clients that vanish', async () => {
    const gateway = await startGateway({ mcp: { targets: [programTarget('a'), programTarget('b')] } })
    const session = await openSession(gateway.mcpUrl)
    const cancel = (requestId: unknown) =>
      session.send(
        JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }),
      )
    const hanging = [1, '1', 'x'].map((id) => session.send({ ...call('a_hang'), id }))
    await delay(200)
    for (const id of [2, '2', 'x', 1, '1', 1, null]) await cancel(id)
    await within('the cancelled calls end', Promise.all(hanging))
    expect([await textFrom(session, 'a_cancellations'), await textFrom(session, 'b_cancellations')]).toEqual([
      '3',
      '0',
    ])
    const abort = new AbortController()
    const vanishing = fetch(gateway.mcpUrl, {
      method: 'POST',
      headers: { ...mcpHeaders, ...session.headers },
      body: JSON.stringify(call('a_hang')),
      signal: abort.signal,
    })
    await delay(200)
    abort.abort()
    await expect(vanishing).rejects.toThrow()
    expect(await textFrom(session, 'a_cancellations')).toBe('3')
  })

  it('is kept apart from itself in many calls at once, progress included', async () => {
    const { session } = await withProgram()
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, mark) =>
        session.send({
          jsonrpc: '2.0',
          id: `call-${mark}`,
          method: 'tools/call',
          params: {
            name: 'steps',
            arguments: { count: 20, mark },
            _meta: { progressToken: `token-${mark}` },
          },
        }),
      ),
    )
    for (const [mark, { messages }] of answers.entries()) {
      expect(messages).toHaveLength(21)
      const steps = messages.slice(0, 20)
      expect(steps.map((message) => member(message, 'params', 'progressToken'))).toEqual(
        Array(20).fill(`token-${mark}`),
      )
      expect(steps.map((message) => member(message, 'params', 'progress'))).toEqual(
        Array.from({ length: 20 }, (_, index) => index + 1),
      )
      expect(member(messages.at(-1), 'result', 'content', 0, 'text')).toBe(String(mark))
    }
  })

  it('passes on large answers whole', async () => {
    const { session } = await withProgram()
    const answer = await session.send(call('big', { bytes: 8 * 1024 * 1024 }))
    expect(String(member(answer.messages.at(-1), 'result', 'content', 0, 'text')).length).toBe(
      8 * 1024 * 1024,
    )
  })

  it('ends with DELETE, and its session with it', async () => {
    const { session } = await withProgram()
    const pid = Number(await textFrom(session, 'pid'))
    expect(isRunning(pid)).toBe(true)
    expect(await session.end()).toBe(204)
    await until('the program ends', () => !isRunning(pid))
    expect((await session.send(call('whoami'))).status).toBe(404)
    expect(await session.end()).toBe(404)
  })

  it('ends when its session has not been used for long', async () => {
    const gateway = await startGateway({
      config: { mcp: { sessionTtl: '1s' } },
      mcp: { targets: [programTarget('files')] },
    })
    const session = await openSession(gateway.mcpUrl)
    const pid = Number(await textFrom(session, 'pid'))
    await until('the program ends', () => !isRunning(pid), 45_000)
    expect((await session.send(call('whoami'))).status).toBe(404)
  }, 60_000)

  it('ends with the gateway, also in the middle of a call', async () => {
    const { gateway, session } = await withProgram()
    const pid = Number(await textFrom(session, 'pid'))
    const slow = session.send(call('slow', { ms: 700 }))
    await delay(200)
    gateway.child.kill('SIGTERM')
    const answer = await slow
    expect(member(answer.messages.at(-1), 'result', 'content', 0, 'text')).toBe('at last')
    await within('the gateway ends', gateway.exited)
    await gateway.stop()
    await until('the program ends', () => !isRunning(pid))
  })
})

describe('an HTTP server behind the endpoint', () => {
  it('that breaks in any way fails the call with an answer to it, and nothing else', async () => {
    const server = await startFaultyServer()
    const gateway = await startGateway({ mcp: { targets: [{ name: 'http', mcp: { host: server.url } }] } })
    const session = await openSession(gateway.mcpUrl)
    for (const fault of httpFaults) {
      const answer = await within(`"${fault}" is answered`, session.send(call(fault)), 20_000)
      const last = answer.messages.at(-1)
      // Client libraries end their session at an HTTP error.
      expect({ fault, last, status: answer.status }).toMatchObject({
        fault,
        last: { id: 'c1', error: { code: expect.any(Number) } },
        status: 200,
      })
      if (fault === 'fails') {
        const refusal = { status: 500, body: 'internal trouble' }
        expect(last).toMatchObject({ error: { data: refusal } })
      }
      expect(await textFrom(session, 'fine')).toBe('fine')
    }
    await until('no stream stays open', () => server.open() === 0)
  }, 60_000)

  it('that forgets its session makes the client begin anew', async () => {
    const server = await startFaultyServer()
    const gateway = await startGateway({ mcp: { targets: [{ name: 'http', mcp: { host: server.url } }] } })
    const session = await openSession(gateway.mcpUrl)
    server.sessions.clear()
    expect((await session.send(call('fine'))).status).toBe(404)
    expect(await textFrom(await openSession(gateway.mcpUrl), 'fine')).toBe('fine')
  })

  it('is left in peace by a client that vanishes, and memory does not grow while it talks', async () => {
    const server = await startFaultyServer()
    const gateway = await startGateway({ mcp: { targets: [{ name: 'http', mcp: { host: server.url } }] } })
    const session = await openSession(gateway.mcpUrl)
    for (const tool of ['streams', 'chatter', 'hangs']) {
      const abort = new AbortController()
      const response = fetch(gateway.mcpUrl, {
        method: 'POST',
        headers: { ...mcpHeaders, ...session.headers },
        body: JSON.stringify(call(tool)),
        signal: abort.signal,
      })
      response.catch(() => {})
      if (tool !== 'hangs') await (await response).body?.getReader().read()
      await until('the server has the call', () => server.open() === 1)
      abort.abort()
      await until('the server is left in peace', () => server.open() === 0)
    }
    expect(await textFrom(session, 'fine')).toBe('fine')
  })

  it('receives DELETE when a session has ended', async () => {
    const server = await startFaultyServer()
    const gateway = await startGateway({ mcp: { targets: [{ name: 'http', mcp: { host: server.url } }] } })
    const session = await openSession(gateway.mcpUrl)
    expect(server.sessions.size).toBe(1)
    await session.end()
    await until('the server knows', () => server.sessions.size === 0)
  })
})

describe('three targets: one dead, one with tools only, one with three pages', () => {
  const targets = async () => [
    { name: 'dead', mcp: { host: `http://127.0.0.1:${await freePort()}` } },
    programTarget('tools', '--tools-only'),
    programTarget('paged', '--pages', '3'),
  ]

  it('serves the remaining targets under failOpen', async () => {
    const gateway = await startGateway({ mcp: { targets: await targets(), failureMode: 'failOpen' } })
    const client = await connectClient('SDK 1', gateway.mcpUrl)
    expect(await client.tools()).toEqual(
      expect.arrayContaining(['tools_whoami', 'paged_whoami', 'paged_page-1', 'paged_page-2']),
    )
    expect(await client.prompts()).toEqual(['paged_prompt-0', 'paged_prompt-1', 'paged_prompt-2'])
    expect(await client.call('tools_whoami')).toBe('tools')
    await expect(client.call('dead_anything')).rejects.toThrow()
    expect(await client.call('paged_whoami')).toBe('paged')
  })

  it('serves the targets that respond in time under failOpen, when one does not answer initialize', async () => {
    const gateway = await startGateway({
      mcp: {
        targets: [
          programTarget('a'),
          { name: 'mute', stdio: { cmd: 'sh', args: ['-c', 'cat > /dev/null'] } },
        ],
        failureMode: 'failOpen',
        initializeTimeout: '1s',
      },
    })
    const session = await within('initialize is answered', openSession(gateway.mcpUrl))
    expect(await textFrom(session, 'a_whoami')).toBe('a')
  })

  it('answers 504 with the name of a target that does not answer initialize under failClosed', async () => {
    const gateway = await startGateway({
      mcp: {
        targets: [{ name: 'mute', stdio: { cmd: 'sh', args: ['-c', 'cat > /dev/null'] } }],
        initializeTimeout: '500ms',
      },
    })
    const answer = await within('initialize fails', post(gateway.mcpUrl, initializeMessage))
    expect(answer.status).toBe(504)
    expect(answer.text).toContain('target \\"mute\\" did not answer initialize within 0.5 s')
  })

  it('names the failed target under failClosed', async () => {
    const gateway = await startGateway({ mcp: { targets: await targets() } })
    const answer = await post(gateway.mcpUrl, initializeMessage)
    expect(answer.status).toBe(503)
    expect(answer.text).toContain('dead')
  })

  it('does not lose the others when one dies in mid-session', async () => {
    const gateway = await startGateway({
      mcp: { targets: [programTarget('a'), programTarget('b')], failureMode: 'failOpen' },
    })
    const session = await openSession(gateway.mcpUrl)
    await session.send(call('a_crash'))
    expect(await textFrom(session, 'b_whoami')).toBe('b')
  })
})
