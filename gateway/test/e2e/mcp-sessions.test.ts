import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { liveHeap } from '../support/live-heap.ts'
import { startFaultyServer } from '../support/mcp-faulty-server.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { openSession, post } from '../support/mcp-raw.ts'
import { member } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

// Many sessions, most of them left behind by their clients.

const smallProgram = fileURLToPath(new URL('../support/mcp-program.sh', import.meta.url))

/** Opens sessions, some at a time. */
async function openMany(url: string, count: number): Promise<void> {
  let left = count
  const work = async () => {
    while (left > 0) {
      left -= 1
      await openSession(url)
    }
  }
  await Promise.all(Array.from({ length: 20 }, work))
}

/** Processes whose parent is this one. */
function childrenOf(pid: number): number {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => parentOf(name) === pid).length
}

function parentOf(pid: string): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    // It ended in between.
    return undefined
  }
}

describe('abandoned sessions', () => {
  it('of an HTTP target end at the target too, 1,000 of them, and leave nothing behind', async () => {
    const server = await startFaultyServer()
    const inspectorPort = await freePort()
    const gateway = await startGateway(
      {
        config: { mcp: { sessionTtl: '5s' } },
        mcp: { targets: [{ name: 'http', mcp: { host: server.url } }] },
      },
      { nodeFlags: [`--inspect=127.0.0.1:${inspectorPort}`] },
    )
    const over = () => until('they end at the target', () => server.sessions.size === 0, 80_000)
    // A first round allocates the process's fixed buffers, for a thousand concurrent ends for example.
    await openMany(gateway.mcpUrl, 1000)
    await over()
    const before = await liveHeap(inspectorPort)
    await openMany(gateway.mcpUrl, 1000)
    // Where opening so many takes long, the first ones have ended by now.
    const open = server.sessions.size
    expect(open).toBeGreaterThan(0)
    expect(((await liveHeap(inspectorPort)) - before) / open).toBeLessThan(30_000)
    await over()
    // Ended ids are remembered for the lifetime of the id. The connections that ended them stay open for a
    // while.
    const left = async () => ((await liveHeap(inspectorPort)) - before) / 1000
    await until('what they took is free', async () => (await left()) < 1_500, 60_000)
  }, 240_000)

  it('of a stdio target leave no process', async () => {
    const gateway = await startGateway({
      config: {
        mcp: { sessionTtl: '1s' },
        limits: { maxMcpPrograms: 300, maxMcpProgramsPerClient: 300 },
      },
      mcp: { targets: [{ name: 'sh', stdio: { cmd: 'sh', args: [smallProgram] } }] },
    })
    const pid = gateway.child.pid ?? 0
    await openMany(gateway.mcpUrl, 300)
    // Where starting so many takes long, the first ones have ended by now.
    expect(childrenOf(pid)).toBeGreaterThan(0)
    await until('all have ended', () => childrenOf(pid) === 0, 60_000)
  }, 150_000)
})

describe('statefulMode: stateless', () => {
  it('answers each request with a session of its own at the target, and gives clients none', async () => {
    const server = await startFaultyServer()
    const gateway = await startGateway({
      mcp: { targets: [{ name: 'http', mcp: { host: server.url } }], statefulMode: 'stateless' },
    })
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'fine' } }
    const answer = await post(gateway.mcpUrl, call)
    expect(member(answer.messages.at(-1), 'result', 'content', 0, 'text')).toBe('fine')
    expect(answer.headers.get('mcp-session-id')).toBe(null)
    await until('the session at the target ends', () => server.sessions.size === 0)
    expect((await fetch(gateway.mcpUrl, { headers: { accept: 'text/event-stream' } })).status).toBe(405)
    expect((await fetch(gateway.mcpUrl, { method: 'DELETE' })).status).toBe(405)
  })

  it('leaves no program behind', async () => {
    const gateway = await startGateway({
      mcp: { targets: [programTarget('files')], statefulMode: 'stateless' },
    })
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami' } }
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(gateway.mcpUrl, call)))
    expect(answers.map(({ messages }) => member(messages[0], 'result', 'content', 0, 'text'))).toEqual(
      Array(5).fill('files'),
    )
    await until('all have ended', () => childrenOf(gateway.child.pid ?? 0) === 0)
  })
})

describe('a reload', () => {
  it('keeps the sessions and programs of targets that did not change, and ends the others', async () => {
    const targets = [programTarget('a'), programTarget('b')]
    const gateway = await startGateway({ mcp: { targets: targets.slice(0, 1) } })
    const session = await openSession(gateway.mcpUrl)
    const pid = async () => member(await session.request('tools/call', { name: 'pid' }), 'content', 0, 'text')
    const before = await pid()
    await gateway.reload({
      mcp: {
        targets: targets.slice(0, 1),
        policies: { cors: { allowOrigins: ['https://app.example.com'] } },
      },
    })
    expect(await pid()).toBe(before)
    await gateway.reload({ mcp: { targets: [programTarget('a', '--tools-only')] } })
    expect((await session.send({ jsonrpc: '2.0', id: 1, method: 'ping' })).status).toBe(404)
    await until('the old program ends', () => childrenOf(gateway.child.pid ?? 0) === 0)
  })
})
