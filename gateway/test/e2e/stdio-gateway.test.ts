import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { isRunning } from '../support/is-running.ts'
import { initializeMessage, mcpHeaders, openSession, type RawSession } from '../support/mcp-raw.ts'
import { until } from '../support/wait.ts'

// Which programs of stdio targets run, and for how long, as seen from outside the gateway.

const program = fileURLToPath(new URL('../support/stdio-program.mjs', import.meta.url))
const files = { name: 'files', stdio: { cmd: process.execPath, args: [program] } }
const stubborn = { name: 'files', stdio: { cmd: process.execPath, args: [program, '--stubborn'] } }
const ping = { jsonrpc: '2.0', id: 'p', method: 'ping' }

function start(): Promise<Gateway> {
  return startGateway({ mcp: { targets: [files] } })
}

/** Opens a session, and asks for the id of its process. */
async function open({ mcpUrl }: Gateway): Promise<{ session: RawSession; pid: number }> {
  const session = await openSession(mcpUrl)
  const { pid } = await session.request('pid')
  if (typeof pid !== 'number') throw new Error('no process')
  return { session, pid }
}

describe('the program of a session', () => {
  it('ends when the client deletes the session, which is unknown from then on', async () => {
    const gateway = await start()
    const [{ session, pid }, other] = [await open(gateway), await open(gateway)]
    expect(await session.end()).toBe(204)
    await until('it has ended', () => !isRunning(pid))
    expect(isRunning(other.pid)).toBe(true)
    expect((await session.send(ping)).status).toBe(404)
  })

  it('ends when it has been unused for too long', async () => {
    const gateway = await startGateway({ config: { mcp: { sessionTtl: '1s' } }, mcp: { targets: [files] } })
    const { session, pid } = await open(gateway)
    await until('it has ended', () => !isRunning(pid))
    expect((await session.send(ping)).status).toBe(404)
  })

  it('ends when the client leaves before the session has begun', async () => {
    const slow = { name: 'slow', stdio: { cmd: 'sleep', args: ['71.5'] } }
    const { mcpUrl } = await startGateway({ mcp: { targets: [slow] } })
    const controller = new AbortController()
    const leaving = fetch(mcpUrl, {
      method: 'POST',
      headers: mcpHeaders,
      body: JSON.stringify(initializeMessage),
      signal: controller.signal,
    }).catch(() => undefined)
    const pid = await until('it runs', () => pidOf('sleep\u000071.5\u0000'))
    controller.abort()
    await leaving
    await until('it has ended', () => !isRunning(pid))
  })

  it('ends with the gateway, even if it ignores SIGTERM', async () => {
    const gateway = await startGateway({ mcp: { targets: [stubborn] } })
    const { pid } = await open(gateway)
    await gateway.stop()
    expect(isRunning(pid)).toBe(false)
  })

  it('ends when a second signal ends the gateway at once', async () => {
    const gateway = await startGateway({ mcp: { targets: [stubborn] } }, { mayCrash: true })
    const { pid } = await open(gateway)
    gateway.child.kill('SIGTERM')
    await new Promise((resolve) => setTimeout(resolve, 100))
    gateway.child.kill('SIGTERM')
    await gateway.exited
    await until('it has ended', () => !isRunning(pid))
  })

  it('outlives a change of the configuration that leaves its target alone, and no other', async () => {
    const gateway = await start()
    const { session, pid } = await open(gateway)
    await gateway.reload({
      mcp: { targets: [files], policies: { cors: { allowOrigins: ['http://a.test'] } } },
    })
    expect((await session.send(ping)).status).toBe(200)
    expect(isRunning(pid)).toBe(true)
    await gateway.reload({ mcp: { targets: [{ ...files, stdio: { ...files.stdio, env: { NEW: '1' } } }] } })
    expect((await session.send(ping)).status).toBe(404)
    await until('it has ended', () => !isRunning(pid))
  })
})

/** The process with this command line, as the system shows it. */
function pidOf(commandLine: string): number | undefined {
  const found = readdirSync('/proc').find(
    (entry) => /^\d+$/.test(entry) && readQuietly(`/proc/${entry}/cmdline`) === commandLine,
  )
  return found === undefined ? undefined : Number(found)
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The process has ended in the meantime.
    return ''
  }
}
